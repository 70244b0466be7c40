"""The points of the binding cycle: in which order plugins run, and what their results mean."""

import pytest
from tests.framework.conftest import Workbench
from tests.saying import make

from moorage.api.server_requests import BindPod, DeletePod, PodRef
from moorage.core import binding_points
from moorage.errors import PluginFailure
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    error,
    pending,
    unschedulable,
    wait,
)
from moorage.testing import make_pod, make_state

POD = make_pod("p")
REF = PodRef.of(POD)
BIND = BindPod(REF, "n1")
DELETE = DeletePod(REF)
NO = unschedulable("no")


def profile_and_state(plugins):
    workbench = Workbench(plugins)
    return workbench.profile, make_state(POD, workbench.cluster)


def test_plugins_run_in_the_configured_order():
    said = []
    plugins = [make(name, reserve=lambda *_, n=name: said.append(n) or SUCCESS) for name in "CAB"]
    profile, state = profile_and_state(plugins)
    assert binding_points.reserve(profile, state, POD, "n1") is SUCCESS
    assert said == ["C", "A", "B"]


@pytest.mark.parametrize(
    ("result", "status"),
    [
        pytest.param(NO, NO.by("B"), id="unschedulable"),
        pytest.param(pending("soon"), pending("soon").by("B"), id="pending is a rejection"),
        pytest.param(
            PluginFailure("disk"),
            error('running Reserve plugin "B": disk', "B"),
            id="failure",
        ),
        pytest.param(
            SystemExit(3),
            error('running Reserve plugin "B": called sys.exit(3) (saying.py:9)', "B"),
            id="sys.exit is an error",
        ),
        pytest.param(
            SKIP,
            error('running Reserve plugin "B": returned Skip', "B"),
            id="a code that is not allowed here",
        ),
        pytest.param(
            error("disk"),
            error('running Reserve plugin "B": disk', "B"),
            id="an error status is returned",
        ),
        pytest.param(
            True,
            error(
                'running Reserve plugin "B": reserve returned True, which is not a Status '
                "(saying.py:7)",
                "B",
            ),
            id="not a status",
        ),
    ],
)
def test_reserve_stops_at_the_first_plugin_that_does_not_succeed(result, status):
    later = []
    plugins = [
        make("A", reserve=SUCCESS),
        make("B", reserve=result),
        make("C", reserve=lambda *_: later.append("C") or SUCCESS),
    ]
    profile, state = profile_and_state(plugins)
    assert binding_points.reserve(profile, state, POD, "n1") == status
    assert later == []


def test_unreserve_runs_all_plugins_in_reverse_order_despite_errors():
    undone = []
    plugins = [
        make("A", reserve=SUCCESS, unreserve=lambda *_: undone.append("A")),
        make("B", reserve=SUCCESS, unreserve=SystemExit("stuck")),
        make("C", reserve=SUCCESS),  # has no unreserve
        make("D", reserve=SUCCESS, unreserve=lambda *_: undone.append("D")),
    ]
    profile, state = profile_and_state(plugins)
    errors, _ = binding_points.unreserve(profile, state, POD, "n1")
    assert undone == ["D", "A"]
    assert errors == ["""running Unreserve plugin "B": called sys.exit('stuck') (saying.py:9)"""]


WAITING = Status(Code.WAIT, (binding_points.ASKED_TO_WAIT,))
WAITING_FOR_X = Status(Code.WAIT, ("x", binding_points.ASKED_TO_WAIT))


@pytest.mark.parametrize(
    ("results", "status", "waits"),
    [
        pytest.param([SUCCESS, SUCCESS], SUCCESS, {}, id="all plugins allow"),
        pytest.param([wait(3), wait(7)], WAITING, {"A": 3, "B": 7}, id="both plugins wait"),
        pytest.param([wait(3, "x"), SUCCESS], WAITING_FOR_X, {"A": 3}, id="one plugin waits"),
        pytest.param([wait(3), NO], NO.by("B"), {}, id="a rejection ends all waiting"),
        pytest.param(
            [wait(9999), SUCCESS], WAITING, {"A": 900}, id="the timeout is at most 15 minutes"
        ),
        pytest.param([wait(0), SUCCESS], WAITING, {"A": 0}, id="a timeout of zero"),
        pytest.param(
            [PluginFailure("disk"), wait(1)],
            error('running Permit plugin "A": disk', "A"),
            {},
            id="an exception",
        ),
        pytest.param(
            [SKIP, wait(1)], error('running Permit plugin "A": returned Skip', "A"), {}, id="skip"
        ),
    ],
)
def test_permit(results, status, waits):
    plugins = [make(name, permit=result) for name, result in zip("AB", results, strict=True)]
    profile, state = profile_and_state(plugins)
    assert binding_points.permit(profile, state, POD, "n1") == (
        status,
        waits,
    )


@pytest.mark.parametrize(
    ("results", "code", "active"),
    [
        pytest.param({}, Code.SKIP, [], id="no pre_bind plugins"),
        pytest.param({"A": SKIP, "B": SKIP}, Code.SKIP, [], id="53: all plugins skip"),
        pytest.param(
            {"A": SKIP, "B": SUCCESS}, Code.SUCCESS, ["B"], id="53: one plugin takes part"
        ),
        pytest.param({"A": NO, "B": SUCCESS}, Code.ERROR, [], id="53: a rejection is an error"),
        pytest.param({"A": PluginFailure("x"), "B": SUCCESS}, Code.ERROR, [], id="an exception"),
        pytest.param({"A": None}, Code.ERROR, [], id="None is returned"),
    ],
)
def test_53_pre_flight(results, code, active):
    plugins = [
        make(name, pre_bind=SUCCESS, pre_bind_pre_flight=result) for name, result in results.items()
    ]
    profile, state = profile_and_state(plugins)
    status, found = binding_points.pre_flight(profile, state, POD, "n1")
    assert (status.code, [plugin.name for plugin in found]) == (code, active)


def test_53_the_message_of_a_rejection_in_pre_flight():
    profile, state = profile_and_state([make("A", pre_bind=SUCCESS, pre_bind_pre_flight=NO)])
    status, _ = binding_points.pre_flight(profile, state, POD, "n1")
    assert status.message == (
        'PreBindPreFlight A returned "Unschedulable", which is unsupported. It is supposed to '
        "return Success, Skip, or Error status"
    )
    profile, state = profile_and_state(
        [make("A", pre_bind=SUCCESS, pre_bind_pre_flight=PluginFailure("disk"))]
    )
    status, _ = binding_points.pre_flight(profile, state, POD, "n1")
    assert status.message == 'running PreBindPreFlight "A": disk'


def test_a_plugin_without_pre_flight_takes_part_in_pre_bind():
    profile, state = profile_and_state([make("A", pre_bind=SUCCESS)])
    status, active = binding_points.pre_flight(profile, state, POD, "n1")
    assert (status, [plugin.name for plugin in active]) == (SUCCESS, ["A"])


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param(SUCCESS, SUCCESS.by("A"), id="success"),
        pytest.param(NO, NO.by("A"), id="unschedulable"),
        pytest.param((DELETE,), (DELETE,), id="requests"),
        pytest.param((), (), id="no requests"),
        pytest.param(DELETE, (DELETE,), id="a single request"),
        pytest.param(
            PluginFailure("x"), error('running PreBind plugin "A": x', "A"), id="an exception"
        ),
        pytest.param(
            SKIP, error('running PreBind plugin "A": returned Skip', "A"), id="skip is not allowed"
        ),
        pytest.param(
            "no",
            error(
                "running PreBind plugin \"A\": pre_bind returned 'no', which is not a Status "
                "(saying.py:7)",
                "A",
            ),
            id="not a status",
        ),
    ],
)
def test_pre_bind(result, expected):
    profile, state = profile_and_state([make("A", pre_bind=result)])
    (plugin,) = profile.pre_binds
    found = binding_points.pre_bind(profile, plugin, state, POD, "n1")
    assert found == expected


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param(BIND, BIND, id="a request"),
        pytest.param(SUCCESS, SUCCESS.by("A"), id="success"),
        pytest.param(SKIP, SKIP.by("A"), id="skip"),
        pytest.param(NO, NO.by("A"), id="unschedulable"),
        pytest.param(
            PluginFailure("x"), error('running Bind plugin "A": x', "A"), id="an exception"
        ),
        pytest.param(
            wait(1), error('running Bind plugin "A": returned Wait', "A"), id="wait is not allowed"
        ),
        pytest.param(
            (BIND,),
            error(
                f'running Bind plugin "A": bind returned {(BIND,)!r}, which is not a Status '
                "(saying.py:7)",
                "A",
            ),
            id="several requests",
        ),
    ],
)
def test_bind(result, expected):
    profile, state = profile_and_state([make("A", bind=result)])
    method = profile.chain["bind"][-1]
    assert binding_points.bind(method, state, POD, "n1") == expected


def test_post_bind_runs_all_plugins_despite_errors():
    called_for = []
    plugins = [
        make("A", post_bind=PluginFailure("oh")),
        make("B", post_bind=lambda *args: called_for.append(args[-1])),
    ]
    profile, state = profile_and_state(plugins)
    errors = binding_points.post_bind(profile, state, POD, "n1")
    assert (called_for, errors) == (["n1"], ['running PostBind plugin "A": oh'])
