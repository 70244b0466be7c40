import pytest
from msgspec.structs import replace
from tests.affinity_builders import make_constraint

from moorage import plugin as mp
from moorage.api.pod import PodStatus
from moorage.plugins.pod_topology_spread import PodTopologySpread
from moorage.testing import make_node, make_pod

QUEUE, SKIP = mp.Hint.QUEUE, mp.Hint.QUEUE_SKIP
EVENT = mp.ClusterEvent

BY_ZONE = make_constraint("foo@zone")
HONORING = make_constraint("foo@zone", node_taints_policy="Honor")
BOTH = (BY_ZONE, make_constraint("bar@node"))


def waiting(*constraints, tolerations=(), labels=None):
    constraints = constraints or BOTH
    return make_pod(
        "waiting",
        labels=labels,
        topology_spread_constraints=constraints,
        tolerations=[mp.Toleration(key=key) for key in tolerations],
    )


def other(*, node="n1", namespace="default", **labels):
    return make_pod("other", namespace=namespace, labels=labels, node=node)


def nominated(**labels):
    return replace(other(node=None, **labels), status=PodStatus(nominated_node_name="n1"))


@pytest.mark.parametrize(
    ("pod", "old", "new", "hint"),
    [
        pytest.param(waiting(), None, other(bar="x"), QUEUE, id="one that matches came"),
        pytest.param(waiting(), other(foo="x"), None, QUEUE, id="... or went"),
        pytest.param(waiting(), other(baz="x"), None, SKIP, id="one that does not match went"),
        pytest.param(waiting(), None, other(foo="x", node=None), SKIP, id="one without a node"),
        pytest.param(waiting(), other(foo="x", node=None), None, SKIP, id="... went"),
        pytest.param(
            waiting(), nominated(foo="x"), None, QUEUE, id="... that has a nominated node"
        ),
        pytest.param(
            waiting(), None, other(foo="x", namespace="other"), SKIP, id="of another namespace"
        ),
        pytest.param(waiting(), other(foo="1"), other(foo="2"), SKIP, id="matches as before"),
        pytest.param(waiting(), other(), other(foo="1"), QUEUE, id="begins to match"),
        pytest.param(waiting(), other(foo="1"), other(), QUEUE, id="ceases to match"),
        pytest.param(waiting(), other(foo="1"), other(foo="1"), SKIP, id="labels unchanged"),
        pytest.param(
            waiting(),
            waiting(),
            waiting(labels={"foo": "x"}),
            QUEUE,
            id="the pod itself begins to match",
        ),
        pytest.param(
            waiting(HONORING),
            waiting(HONORING),
            waiting(HONORING, tolerations="t"),
            QUEUE,
            id="the pod tolerates more, and taints are honoured",
        ),
        pytest.param(
            waiting(), waiting(), waiting(tolerations="t"), SKIP, id="... and taints are ignored"
        ),
        pytest.param(
            waiting(make_constraint("@zone")), None, other(), QUEUE, id="an empty selector"
        ),
        pytest.param(waiting(make_constraint("zone")), None, other(), SKIP, id="no selector"),
        pytest.param(
            waiting(make_constraint("foo@zone", when_unsatisfiable="ScheduleAnyway")),
            None,
            other(foo="x"),
            SKIP,
            id="soft constraints reject no pod",
        ),
    ],
)
def test_pod_change(pod, old, new, hint):
    assert PodTopologySpread().events_to_register()[EVENT.POD_ADD](pod, old, new) is hint


def node(*keys, value="v", taint=None):
    taints = [mp.Taint(key=taint)] if taint else []
    return make_node("n1", labels=dict.fromkeys(keys, value), taints=taints)


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, node("zone"), SKIP, id="came with one of two keys"),
        pytest.param(None, node("zone", "node"), QUEUE, id="came with both"),
        pytest.param(node("zone", "node"), None, QUEUE, id="went"),
        pytest.param(node("node"), None, SKIP, id="went, and had one of two keys"),
        pytest.param(node("zone"), node("zone", "node"), QUEUE, id="got the second key"),
        pytest.param(node("zone", "node"), node("zone"), QUEUE, id="lost a key"),
        pytest.param(
            node("zone", "node"), node("zone", "node", value="w"), QUEUE, id="another value"
        ),
        pytest.param(node("zone"), node("zone", value="w"), SKIP, id="... without both keys"),
        pytest.param(
            node("zone", "node"), node("zone", "node", taint="t"), QUEUE, id="another taint"
        ),
        pytest.param(node("zone"), node("zone", taint="t"), SKIP, id="... without both keys "),
        pytest.param(
            node("zone", "node"), node("zone", "node", "disk"), SKIP, id="a label of no concern"
        ),
    ],
)
def test_node_change(old, new, hint):
    assert PodTopologySpread().events_to_register()[EVENT.NODE_ADD](waiting(), old, new) is hint


def test_the_selector_of_default_constraints_is_not_known():
    plugin = PodTopologySpread(
        defaulting_type="List",
        default_constraints=[
            make_constraint("zone"),
            make_constraint("node", when_unsatisfiable="ScheduleAnyway"),
        ],
    )
    hints, pod = plugin.events_to_register(), make_pod("waiting")
    assert hints[EVENT.POD_ADD](pod, None, other()) is QUEUE
    assert hints[EVENT.UPDATE_POD_LABEL](pod, other(), other(foo="x")) is QUEUE
    assert hints[EVENT.UPDATE_POD_LABEL](pod, other(), other()) is SKIP
    assert hints[EVENT.POD_DELETE](pod, other(namespace="other"), None) is SKIP
    assert hints[EVENT.NODE_ADD](pod, None, node("zone")) is QUEUE
    assert hints[EVENT.NODE_ADD](pod, None, node("node")) is SKIP


def test_events():
    registered = PodTopologySpread().events_to_register()
    assert [event.label for event in registered] == [
        "PodAdd",
        "PodUpdatePodLabel",
        "PodUpdatePodToleration",
        "PodDelete",
        "NodeAdd",
        "NodeDelete",
        "NodeUpdateNodeLabel",
        "NodeUpdateNodeTaint",
    ]
