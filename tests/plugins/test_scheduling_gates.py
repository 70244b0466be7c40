import pytest

from moorage import plugin as mp
from moorage.plugins.scheduling_gates import SchedulingGates
from moorage.testing import check_plugin, make_pod


@pytest.mark.parametrize(
    ("gates", "status"),
    [
        pytest.param((), mp.SUCCESS, id="no gates"),
        pytest.param(
            ("foo",), mp.unresolvable("waiting for scheduling gates: [foo]"), id="one gate"
        ),
        pytest.param(
            ("foo", "bar"),
            mp.unresolvable("waiting for scheduling gates: [foo bar]"),
            id="gates are named in the order of the spec",
        ),
    ],
)
def test_pre_enqueue(gates, status):
    assert SchedulingGates().pre_enqueue(make_pod(gates=gates)) == status


@pytest.mark.parametrize(
    ("changed", "hint"),
    [
        pytest.param(make_pod("gated"), mp.Hint.QUEUE, id="the pod's own gates are gone"),
        pytest.param(make_pod("other"), mp.Hint.QUEUE_SKIP, id="another pod's gates are gone"),
        pytest.param(
            make_pod("gated", uid="reborn"), mp.Hint.QUEUE_SKIP, id="a namesake's gates are gone"
        ),
    ],
)
def test_hint(changed, hint):
    registered = SchedulingGates().events_to_register()
    ask = registered[mp.ClusterEvent.POD_GATES_ELIMINATED]
    assert ask(make_pod("gated", gates=["foo"]), make_pod("gated", gates=["foo"]), changed) is hint
    assert list(registered) == [mp.ClusterEvent.POD_GATES_ELIMINATED]


def test_conforms():
    check_plugin(SchedulingGates())
