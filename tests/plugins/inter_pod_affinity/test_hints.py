import pytest
from msgspec.structs import replace
from tests.affinity_builders import make_affinity, make_term

from moorage import plugin as mp
from moorage.api.pod import PodStatus
from moorage.plugins.inter_pod_affinity import InterPodAffinity
from moorage.plugins.inter_pod_affinity.plugin import node_change, pod_change
from moorage.testing import make_node, make_pod

QUEUE, SKIP = mp.Hint.QUEUE, mp.Hint.QUEUE_SKIP

NEAR = make_affinity(near=["app@zone", "tier@rack"])
AWAY = make_affinity(away=["app@zone"])


def waiting(affinity=None, **labels):
    return make_pod("waiting", labels=labels, affinity=affinity)


def other(*keys, node="n1", affinity=None, **more):
    return make_pod("other", labels=dict.fromkeys(keys, "x"), node=node, affinity=affinity, **more)


def nominated(*keys):
    return replace(other(*keys, node=None), status=PodStatus(nominated_node_name="n1"))


@pytest.mark.parametrize(
    ("pod", "old", "new", "hint"),
    [
        pytest.param(
            waiting(NEAR), None, other("app", "tier"), QUEUE, id="a matching pod is added"
        ),
        pytest.param(waiting(NEAR), None, other("app"), SKIP, id="... that matches one term only"),
        pytest.param(
            waiting(NEAR), None, other("app", "tier", node=None), SKIP, id="... but has no node"
        ),
        pytest.param(
            waiting(NEAR), None, nominated("app", "tier"), QUEUE, id="... and has a nominated node"
        ),
        pytest.param(
            waiting(AWAY),
            None,
            other("app"),
            SKIP,
            id="a pod that matches the anti-affinity is added",
        ),
        pytest.param(
            waiting(NEAR), other("app"), other("app", "tier"), QUEUE, id="labels begin to match"
        ),
        pytest.param(
            waiting(NEAR),
            other("app", "tier"),
            other("app", "tier", "more"),
            SKIP,
            id="labels go on matching",
        ),
        pytest.param(
            waiting(NEAR), other("app", "tier"), other("app"), SKIP, id="labels cease to match"
        ),
        pytest.param(
            waiting(AWAY),
            other("app"),
            other("tier"),
            QUEUE,
            id="labels cease to match the anti-affinity",
        ),
        pytest.param(
            waiting(AWAY),
            other("app"),
            None,
            QUEUE,
            id="a pod that matches the anti-affinity is deleted",
        ),
        pytest.param(waiting(AWAY), nominated("app"), None, QUEUE, id="... before it was bound"),
        pytest.param(waiting(AWAY), other("tier"), None, SKIP, id="another pod is deleted"),
        pytest.param(
            waiting(app="x"),
            other(affinity=AWAY),
            None,
            QUEUE,
            id="a pod whose anti-affinity matches is deleted",
        ),
        pytest.param(
            waiting(NEAR), other("app", "tier"), None, SKIP, id="a matching pod is deleted"
        ),
        pytest.param(
            waiting(NEAR), waiting(NEAR), waiting(NEAR, app="x"), QUEUE, id="the pod's own labels"
        ),
        pytest.param(
            waiting(make_affinity(away=["app@zone", "tier@zone"])),
            other("app"),
            None,
            SKIP,
            id="the deleted pod matched one of two terms: skipped, as in Kubernetes",
        ),
        pytest.param(
            waiting(make_affinity(near=[make_term("app@zone", namespace_selector="team=a")])),
            None,
            other("app"),
            SKIP,
            id="a namespace selector sees no labels here: as in Kubernetes",
        ),
    ],
)
def test_pod_change(pod, old, new, hint):
    assert pod_change(pod, old, new) is hint


def node(**labels):
    return make_node("n1", labels=labels)


@pytest.mark.parametrize(
    ("affinity", "old", "new", "hint"),
    [
        pytest.param(NEAR, None, node(rack="r1"), QUEUE, id="a node is added with a key"),
        pytest.param(NEAR, None, node(), SKIP, id="a node is added without a key"),
        pytest.param(AWAY, None, node(), QUEUE, id="a node is added without a key, anti-affinity"),
        pytest.param(NEAR, node(), node(zone="z1"), QUEUE, id="a node gets a key"),
        pytest.param(AWAY, node(), node(zone="z1"), SKIP, id="... anti-affinity"),
        pytest.param(NEAR, node(zone="z1"), node(zone="z2"), QUEUE, id="another value"),
        pytest.param(AWAY, node(zone="z1"), node(zone="z2"), QUEUE, id="... likewise"),
        pytest.param(NEAR, node(zone="z1"), node(), SKIP, id="a node loses a key"),
        pytest.param(AWAY, node(zone="z1"), node(), QUEUE, id="... anti-affinity"),
        pytest.param(AWAY, node(disk="a"), node(disk="b"), SKIP, id="other labels"),
        pytest.param(None, None, node(zone="z1"), SKIP, id="no terms: as in Kubernetes"),
    ],
)
def test_node_change(affinity, old, new, hint):
    assert node_change(waiting(affinity), old, new) is hint


def test_events():
    registered = InterPodAffinity().events_to_register()
    assert [event.label for event in registered] == [
        "PodAdd",
        "PodUpdatePodLabel",
        "PodDelete",
        "NodeAdd",
        "NodeUpdateNodeLabel",
    ]
