"""From permit to bound, stage by stage; numbers are rows of the specification."""

import pytest
from tests.saying import make

from moorage.api.server_requests import BindPod, DeletePod, PodRef
from moorage.core import binding_cycle as stages
from moorage.core.binding_cycle import BindingCycle
from moorage.core.effects import Done, Failed, Unknown
from moorage.core.queued_pod import QueuedPod
from moorage.errors import PluginFailure
from moorage.framework.status import SKIP, SUCCESS, Code, error, unschedulable
from moorage.testing import make_pod, make_state

POD = make_pod("p")
REF = PodRef.of(POD)
BIND = BindPod(REF, "n1")
FIRST, SECOND = DeletePod(PodRef("default", "a", "a")), DeletePod(PodRef("default", "b", "b"))
NO = unschedulable("no")


def begin(machine, *plugins):
    """A pod that has just been permitted; every pre_bind plugin is busy."""
    scheduler = machine(*plugins).scheduler
    profile = scheduler.profiles["default-scheduler"]
    state = make_state(POD, scheduler.cluster)
    template = scheduler.templates.of(POD)
    cycle = BindingCycle(QueuedPod(POD, 0.0), POD, "n1", template, profile, state, 0.0, frozenset())
    assert cycle.stage == stages.RESERVE
    cycle.stage = stages.PERMIT
    cycle.busy = list(profile._at["pre_bind"])
    cycle.allow()
    return cycle


def answer(cycle, *outcomes):
    for outcome in outcomes:
        cycle.completed(outcome)
    return cycle.step()


def test_nothing_to_do_but_bind(machine):
    cycle = begin(machine)
    assert cycle.step() == [BIND]
    assert cycle.stage == stages.BIND
    assert answer(cycle, Done()) == []
    assert (cycle.stage, cycle.status) == (stages.DONE, SUCCESS)


def test_pre_bind_plugins_one_after_the_other(machine):
    cycle = begin(
        machine,
        make("A", pre_bind=(FIRST, SECOND)),
        make("B", pre_bind=SUCCESS),
        make("C", pre_bind=()),
        make("D", pre_bind=SECOND),
    )
    assert cycle.step() == [FIRST, SECOND]
    assert cycle.step() == []  # Both have to be carried out.
    assert answer(cycle, Done()) == []
    assert answer(cycle, Done()) == [SECOND]
    assert cycle.stage == stages.PRE_BIND
    assert answer(cycle, Done()) == [BIND]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        pytest.param(NO, NO.by("A"), id="refused"),
        pytest.param(
            PluginFailure("disk"), error('running PreBind plugin "A": disk', "A"), id="error"
        ),
    ],
)
def test_a_pre_bind_plugin_does_not_succeed(machine, said, status):
    cycle = begin(machine, make("A", pre_bind=said), make("B", pre_bind=PluginFailure("unused")))
    assert cycle.step() == []
    assert (cycle.stage, cycle.status, cycle.outstanding) == (stages.FAILED, status, 0)


@pytest.mark.parametrize(
    "outcome", [Failed("conflict"), Unknown("conflict")], ids=["failed", "unknown"]
)
def test_a_request_of_pre_bind_fails(machine, outcome):
    cycle = begin(machine, make("A", pre_bind=(FIRST, SECOND)))
    cycle.step()
    assert answer(cycle, outcome) == []
    assert cycle.status == error('running PreBind plugin "A": conflict', "A")
    assert (cycle.stage, cycle.outstanding) == (stages.FAILED, 1)  # The other is under way still.
    assert answer(cycle, Done()) == []
    assert (cycle.stage, cycle.outstanding) == (stages.FAILED, 0)


def test_the_binding_fails(machine):
    cycle = begin(machine)
    cycle.step()
    answer(cycle, Failed("already bound"))
    assert (cycle.stage, cycle.failed_in) == (stages.FAILED, stages.BIND)
    assert cycle.status == error(
        'running Bind plugin "DefaultBinder": already bound', "DefaultBinder"
    )


@pytest.mark.parametrize(
    ("said", "stage", "status"),
    [
        pytest.param(SUCCESS, stages.DONE, SUCCESS, id="done by the plugin itself"),
        pytest.param(NO, stages.FAILED, NO.by("A"), id="refused"),
        pytest.param(
            PluginFailure("x"),
            stages.FAILED,
            error('running Bind plugin "A": x', "A"),
            id="error",
        ),
    ],
)
def test_a_bind_plugin_of_ones_own(machine, said, stage, status):
    cycle = begin(machine, make("A", bind=said))
    assert cycle.step() == []
    assert (cycle.stage, cycle.status) == (stage, status)


def test_a_bind_plugin_may_leave_it_to_the_next(machine):
    cycle = begin(machine, make("A", bind=SKIP))
    assert cycle.step() == [BIND]


def test_all_bind_plugins_skip(machine):
    cycle = begin(machine, make("A", bind=SKIP))
    cycle.unbound = cycle.unbound[:1]
    assert cycle.step() == []
    assert (cycle.stage, cycle.status.code, cycle.status.message) == (stages.FAILED, Code.SKIP, "")
