import numpy as np
import pytest

from moorage import plugin as mp
from moorage.plugins.taint_toleration import UNTOLERATED, TaintToleration
from moorage.testing import check_plugin, make_node, make_pod, make_state, make_table, run_plugin


def taint(key="gpu", value="", effect="NoSchedule"):
    return mp.Taint(key=key, value=value, effect=effect)


def tolerate(key="gpu", operator="", value="", effect=""):
    return mp.Toleration(key=key, operator=operator, value=value, effect=effect)


@pytest.mark.parametrize(
    ("taints", "tolerations", "status"),
    [
        pytest.param([], [], mp.SUCCESS, id="no taints"),
        pytest.param([taint()], [], UNTOLERATED, id="a NoSchedule taint"),
        pytest.param([taint(effect="NoExecute")], [], UNTOLERATED, id="a NoExecute taint"),
        pytest.param([taint(effect="PreferNoSchedule")], [], mp.SUCCESS, id="a soft taint"),
        pytest.param([taint(effect="Unheard")], [], mp.SUCCESS, id="an unknown effect"),
        pytest.param(
            [taint(value="a")],
            [tolerate(value="a", effect="PreferNoSchedule")],
            UNTOLERATED,
            id="key and value tolerated with effect PreferNoSchedule only",
        ),
        pytest.param(
            [taint(value="a")], [tolerate(value="a")], mp.SUCCESS, id="an empty effect means all"
        ),
        pytest.param(
            [taint(value="a")], [tolerate(value="b")], UNTOLERATED, id="another value tolerated"
        ),
        pytest.param(
            [taint(value="a")], [tolerate(operator="Exists")], mp.SUCCESS, id="any value tolerated"
        ),
        pytest.param(
            [taint(), taint("spot")], [tolerate()], UNTOLERATED, id="one of two taints tolerated"
        ),
        pytest.param(
            [taint(), taint("spot")],
            [tolerate("", "Exists")],
            mp.SUCCESS,
            id="every taint tolerated by an empty key",
        ),
        pytest.param(
            [taint(value="a")],
            [tolerate("", value="a")],
            mp.SUCCESS,
            id="an empty key with Equal still compares values",
        ),
        pytest.param(
            [taint(value="a")], [tolerate("", "Equal")], UNTOLERATED, id="... and values differ"
        ),
        pytest.param(
            [taint(value="950")],
            [tolerate(operator="Gt", value="750")],
            UNTOLERATED,
            id="Gt tolerates nothing while its feature gate is off",
        ),
        pytest.param(
            [taint(value="high")],
            [tolerate(operator="Lt", value="0100")],
            UNTOLERATED,
            id="nor does Lt",
        ),
        pytest.param([taint()], [tolerate(operator="Like")], UNTOLERATED, id="an unknown operator"),
    ],
)
def test_filter(taints, tolerations, status):
    ran = run_plugin(TaintToleration(), make_pod(tolerations=tolerations), make_node(taints=taints))
    assert ran.status == status


def test_reason_does_not_name_the_taint():
    assert mp.unresolvable("node(s) had untolerated taint(s)") == UNTOLERATED


def soft(*keys):
    return [taint(key, "v", "PreferNoSchedule") for key in keys]


@pytest.mark.parametrize(
    ("tolerations", "per_node", "raw", "scores"),
    [
        pytest.param(
            [],
            [soft(), soft("a"), soft("a", "b")],
            [0, 1, 2],
            [100, 50, 0],
            id="fewer soft taints are better",
        ),
        pytest.param(
            [
                tolerate("a", "Exists", effect="NoSchedule"),
                tolerate("b", value="v", effect="NoExecute"),
            ],
            [soft(), soft("a"), soft("a", "b")],
            [0, 1, 2],
            [100, 50, 0],
            id="tolerations of hard effects do not count",
        ),
        pytest.param(
            [tolerate("a", value="v", effect="PreferNoSchedule"), tolerate("b", "Exists")],
            [soft("a"), soft("a", "b"), soft("a", "b", "c")],
            [0, 0, 1],
            [100, 100, 0],
            id="tolerations of the soft effect or of all count",
        ),
        pytest.param(
            [],
            [[taint()], [taint(effect="NoExecute")], []],
            [0, 0, 0],
            [100, 100, 100],
            id="hard taints do not cost score, and all zero is all best",
        ),
    ],
)
def test_score(tolerations, per_node, raw, scores):
    pod = make_pod(tolerations=tolerations)
    nodes = [make_node(f"n{i}", taints=taints) for i, taints in enumerate(per_node)]
    ran = [run_plugin(TaintToleration(), pod, node, others=_but(nodes, node)) for node in nodes]
    assert [one.raw for one in ran] == raw
    assert [one.score for one in ran] == scores


def _but(nodes, node):
    return [other for other in nodes if other is not node]


def test_score_needs_what_pre_score_left():
    pod, table = make_pod(), make_table([make_node()])
    row = table.row_of["node"]
    with pytest.raises(mp.PluginFailure, match='failed to read "PreScoreTaintToleration" from'):
        TaintToleration().score(make_state(pod, table), pod, table.info(row))


@pytest.mark.parametrize(
    ("raw", "scores"),
    [
        pytest.param([1, 2, 3, 4], [75, 50, 25, 0], id="in proportion, reversed"),
        pytest.param([1000, 1, 1, 1], [0, 100, 100, 100], id="small ones are truncated to nothing"),
        pytest.param([0, 0], [100, 100], id="nothing anywhere"),
    ],
)
def test_normalizer(raw, scores):
    normalizer = TaintToleration.normalizer
    array = np.array(raw, dtype=np.int64)
    assert normalizer.apply(array, normalizer.summarize(array)).tolist() == scores


CLEAN, TAINTED = make_node(), make_node(taints=[taint()])
OTHERWISE = make_node(taints=[taint("spot")])


@pytest.mark.parametrize("event", [mp.ClusterEvent.NODE_ADD, mp.ClusterEvent.UPDATE_NODE_TAINT])
@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, CLEAN, mp.Hint.QUEUE, id="a new node without taints"),
        pytest.param(None, TAINTED, mp.Hint.QUEUE_SKIP, id="a new node with a taint"),
        pytest.param(None, OTHERWISE, mp.Hint.QUEUE, id="a new node with a tolerated taint"),
        pytest.param(TAINTED, CLEAN, mp.Hint.QUEUE, id="the taint is gone"),
        pytest.param(TAINTED, OTHERWISE, mp.Hint.QUEUE, id="the taint became a tolerated one"),
        pytest.param(CLEAN, TAINTED, mp.Hint.QUEUE_SKIP, id="a taint came"),
        pytest.param(CLEAN, OTHERWISE, mp.Hint.QUEUE_SKIP, id="it was open to the pod before"),
        pytest.param(TAINTED, TAINTED, mp.Hint.QUEUE_SKIP, id="it is still closed to the pod"),
    ],
)
def test_node_hint(event, old, new, hint):
    ask = TaintToleration().events_to_register()[event]
    assert ask(make_pod(tolerations=[tolerate("spot", "Exists")]), old, new) is hint


@pytest.mark.parametrize(
    ("changed", "hint"),
    [
        pytest.param("mine", mp.Hint.QUEUE, id="the pod tolerates more, whatever it is"),
        pytest.param("other", mp.Hint.QUEUE_SKIP, id="another pod tolerates more"),
    ],
)
def test_pod_hint(changed, hint):
    ask = TaintToleration().events_to_register()[mp.ClusterEvent.UPDATE_POD_TOLERATION]
    new = make_pod(changed, tolerations=[tolerate("unrelated")])
    assert ask(make_pod("mine"), make_pod(changed), new) is hint


def test_conforms():
    check_plugin(TaintToleration())
