"""The extension points of the binding cycle: each function runs one for a pod, with all plugins
that take part, or with one of them.
"""

from typing import Any

from moorage.api.meta import NodeName
from moorage.api.pod import Pod
from moorage.api.server_requests import PodRef, Request
from moorage.errors import PluginError
from moorage.framework import invoke
from moorage.framework.invoke import PluginMethod, measured
from moorage.framework.points import Awaiting
from moorage.framework.profile import Profile
from moorage.framework.state import CycleState
from moorage.framework.status import SKIP, SUCCESS, Code, Status, error

LONGEST_WAIT_SECONDS = 15 * 60.0
ASKED_TO_WAIT = "one or more plugins asked to wait and no plugin rejected pod"


@measured("Reserve")
def reserve(profile: Profile, state: CycleState, pod: Pod, node: NodeName) -> Status:
    """Reserve with every plugin, in order, until one rejects the pod."""
    for method in profile.chain["reserve"]:
        if method.name not in state.idle:
            status = invoke.result_of(method, Status, state, pod, node)
            if not status.is_success:
                return status
    return SUCCESS


@measured("Unreserve")
def unreserve(
    profile: Profile, state: CycleState, pod: Pod, node: NodeName
) -> tuple[list[str], tuple[Request, ...]]:
    """Undo with every plugin, in reverse order; returns the failures and the requests."""
    requests: list[Request] = []
    failures = _run_all(profile.chain["unreserve"], state, pod, node, requests)
    return failures, tuple(requests)


@measured("Permit")
def permit(
    profile: Profile, state: CycleState, pod: Pod, node: NodeName
) -> tuple[Status, dict[str, float]]:
    """The first rejection, WAIT or SUCCESS; and how long the plugins want to wait, by name."""
    waits: dict[str, float] = {}
    reasons: tuple[str, ...] = ()
    for method in profile.chain["permit"]:
        if method.name in state.idle:
            continue
        status = invoke.result_of(method, Status, state, pod, node)
        if status.code is Code.WAIT:
            waits[method.name] = min(status.wait_seconds or 0.0, LONGEST_WAIT_SECONDS)
            reasons += status.reasons
        elif not status.is_success:
            return status, {}
    return Status(Code.WAIT, (*reasons, ASKED_TO_WAIT)) if waits else SUCCESS, waits


@measured("PreBindPreFlight")
def pre_flight(
    profile: Profile, state: CycleState, pod: Pod, node: NodeName
) -> tuple[Status, list[Any]]:
    """The pre_bind plugins that have something to do; the status is SKIP if none has."""
    busy = []
    for plugin in profile.pre_binds:
        if plugin.name in state.idle:
            continue
        method = profile.method(plugin, "pre_bind_pre_flight")
        if method is None:
            busy.append(plugin)
            continue
        status = invoke.result_of(method, Status, state, pod, node)
        if status.code is Code.ERROR:
            return status, []
        if status.code not in (Code.SUCCESS, Code.SKIP):
            text = (
                f'PreBindPreFlight {plugin.name} returned "{status.code.label}", which is '
                "unsupported. It is supposed to return Success, Skip, or Error status"
            )
            return error(text, plugin.name), []
        if not status.is_skip:
            busy.append(plugin)
    return (SUCCESS if busy else SKIP), busy


@measured("PreBind")
def pre_bind(
    profile: Profile,
    plugin: Any,
    state: CycleState,
    pod: Pod,
    node: NodeName,
    method: str = "pre_bind",
) -> Status | Awaiting | tuple[Request, ...]:
    """The result of one plugin's pre_bind or pre_bind_next."""
    return invoke.pre_bind(profile.require(plugin, method), state, pod, node)


def bind(method: PluginMethod, state: CycleState, pod: Pod, node: NodeName) -> Status | Request:
    """The result of one bind plugin, which may also be an extender."""
    meter = method.meter
    began = 0.0 if meter is None else meter.begin()
    try:
        result = method.call(state, pod, node)
        if not (isinstance(result, Request) and isinstance(result.pod, PodRef)):
            result = invoke.status_of(method, result)
    except PluginError as failure:
        result = error(str(failure), method.name)
    if meter is not None:
        meter.end_point("Bind", began, result)
    return result  # type: ignore[no-any-return]  # checked above


@measured("PostBind")
def post_bind(profile: Profile, state: CycleState, pod: Pod, node: NodeName) -> list[str]:
    """Call every plugin after the pod is bound; returns the failures."""
    return _run_all(profile.chain["post_bind"], state, pod, node)


def _run_all(
    methods: list[PluginMethod],
    state: CycleState,
    pod: Pod,
    node: NodeName,
    requests: list[Request] | None = None,
) -> list[str]:
    """Call a method of every plugin, also after one failed; returns the failures.

    What the methods return is added to the requests.
    """
    failures: list[str] = []
    for method in methods:
        if method.name not in state.idle:
            try:
                requested = method.call(state, pod, node)
                if requests is not None and requested is not None:
                    if not invoke.are_requests(requested):
                        raise method.returned(requested, "a tuple of requests")
                    requests += requested
            except PluginError as failure:
                failures.append(str(failure))
    return failures
