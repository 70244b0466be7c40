"""Which placement is the best for a group. Ids are specification rows."""

from random import Random

import pytest
from tests.saying import make

from moorage.api.meta import ObjectMeta
from moorage.api.pod_groups import PodGroup
from moorage.core.pod_group_placements import GroupPlacements, PlacementError
from moorage.framework.profile import Profile
from moorage.nodes.pod_groups import GroupPlacement
from moorage.testing import make_cluster, make_node

GROUP = PodGroup(metadata=ObjectMeta(name="g", namespace="default"))


def best(*scores, weights=(1, 1), seed=0):
    """The index of the best placement; `scores` are those of each plugin, by placement."""
    cluster = make_cluster([make_node("n")], objects=[GROUP])
    placements = [GroupPlacement(str(i), cluster.table.active_rows) for i in range(len(scores[0]))]
    plugins = [
        make(
            name, placement_score=lambda _, group, placement, pods, own=own: own[int(placement[0])]
        )
        for name, own in zip("AB", scores, strict=False)
    ]
    weighted = [(plugin(), weight) for plugin, weight in zip(plugins, weights, strict=False)]
    profile = Profile("p", {"placement_score": weighted}, cluster)
    chooser = GroupPlacements(cluster, Random(seed))
    return chooser.best(profile, GROUP.key, placements, [[] for _ in placements])


@pytest.mark.parametrize(
    ("scores", "weights", "index"),
    [
        pytest.param([(2, 1)], (1,), 0, id="29"),
        pytest.param([(1, 2)], (1,), 1, id="29: reversed"),
        pytest.param([(50, 75), (25, 10)], (1, 2), 0, id="30: 100 against 95"),
    ],
)
def test_the_highest_total(scores, weights, index):
    assert best(*scores, weights=weights) == index


def test_the_seed_breaks_ties():
    assert {best((7, 7), seed=seed) for seed in range(20)} == {0, 1}


@pytest.mark.parametrize("score", [-1, 101])
def test_a_score_that_is_out_of_range(score):
    with pytest.raises(PlacementError, match=f"returns an invalid score {score}"):
        best((score, 1))


def test_a_group_that_is_gone():
    cluster = make_cluster([make_node("n")])
    plugin = make("Generator", placement_generate=lambda cluster, group: None)
    profile = Profile("p", {"placement_generate": [(plugin(), 0)]}, cluster)
    with pytest.raises(PlacementError, match="failed to get pod group default/g: not found"):
        GroupPlacements(cluster, Random(0)).generate(profile, "default/g")
