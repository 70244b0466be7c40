"""Scores by storage utilization, if a shape is configured."""

import pytest
from tests.storage_builders import (
    claimed,
    make_capacity,
    make_class,
    make_driver,
    make_free_volume,
    make_waiting_claim,
)

from moorage import plugin as mp
from moorage.plugins.volume_binding import VolumeBinding
from moorage.testing import make_cluster, make_node, make_pod, make_state

RISING = (
    mp.UtilizationShapePoint(utilization=0, score=0),
    mp.UtilizationShapePoint(utilization=100, score=10),
)


def score(objects, claims, shape=RISING):
    pod = make_pod(volumes=tuple(claimed(claim.name) for claim in claims))
    cluster = make_cluster([make_node()], objects=[*objects, *claims])
    plugin, state = VolumeBinding(shape=shape), make_state(pod, cluster)
    assert plugin.pre_filter(state, pod).is_success
    assert plugin.pre_score(state, pod, cluster.table.active).is_success
    return plugin.score(state, pod, cluster.table.info(cluster.table.row_of["node"]))


FAST, SLOW = make_class(), make_class("slow")


@pytest.mark.parametrize(
    ("objects", "claims", "points"),
    [
        pytest.param(
            [FAST, make_free_volume(size="200Gi")], [make_waiting_claim(size="50Gi")], 25, id="17"
        ),
        pytest.param(
            [FAST, make_free_volume(size="100Gi")],
            [make_waiting_claim(size="50Gi")],
            50,
            id="17: half full",
        ),
        pytest.param(
            [
                FAST,
                SLOW,
                make_free_volume("a", "200Gi"),
                make_free_volume("b", "100Gi", storage_class="slow"),
            ],
            [
                make_waiting_claim("a", "50Gi"),
                make_waiting_claim("b", "50Gi", storage_class="slow"),
            ],
            38,
            id="17: half a point goes up",
        ),
        pytest.param(
            [FAST, make_driver(), make_capacity(capacity="100Gi")],
            [make_waiting_claim("a", "50Gi"), make_waiting_claim("b", "50Gi")],
            100,
            id="18: out of one pool",
        ),
        pytest.param([FAST], [make_waiting_claim()], 0, id="no accounts are kept"),
        pytest.param(
            [FAST, make_driver(), make_capacity(capacity=None, largest="2Gi")],
            [make_waiting_claim()],
            100,
            id="capacity that is not said counts as none",
        ),
    ],
)
def test_scores(objects, claims, points):
    assert score(objects, claims) == points


def test_a_falling_shape_with_a_bend():
    points = [(0, 10), (50, 8), (100, 0)]
    shape = tuple(mp.UtilizationShapePoint(utilization=u, score=s) for u, s in points)
    volume = [FAST, make_free_volume(size="100Gi")]
    rates = [score(volume, [make_waiting_claim(size=f"{n}Gi")], shape) for n in (0, 25, 50, 75)]
    assert rates == [100, 90, 80, 40]


def test_without_a_shape_there_are_no_scores():
    pod, cluster = make_pod(), make_cluster([make_node()])
    state = make_state(pod, cluster)
    assert VolumeBinding().pre_score(state, pod, cluster.table.active) is mp.SKIP
