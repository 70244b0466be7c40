"""The post_filter plugins of a profile, run for a pod that fits no node."""

from collections.abc import Iterable, Sequence
from typing import Any

from moorage.api.pod import Pod
from moorage.api.server_requests import Request
from moorage.errors import PluginError
from moorage.framework import invoke
from moorage.framework.invoke import PluginMethod, measured
from moorage.framework.post_filter import KEEP, Candidate, NoFeasibleNode, PostFiltered
from moorage.framework.profile import Profile
from moorage.framework.state import NO_PLUGINS, CycleState
from moorage.framework.status import Code, Status, error, unschedulable

# After a plugin with one of these, the next one is called. Enum attributes are looked up slowly.
GOES_ON = (Code.UNSCHEDULABLE, Code.PENDING)


@measured("PostFilter")
def run(profile: Profile, state: CycleState, pod: Pod, failure: NoFeasibleNode) -> PostFiltered:
    """Find out whether something can be done about it; plugins after an answer are not called."""
    # A plugin may have something to do for any pod that a pre_filter plugin rejected.
    idle = profile.idle(state.template) if failure.pre.rejected is None else NO_PLUGINS
    methods = [each for each in profile.chain["post_filter"] if each.name not in idle]
    return combined(_call(method, state, pod, failure) for method in methods)


def _call(
    method: PluginMethod, state: CycleState, pod: Pod, failure: NoFeasibleNode
) -> PostFiltered:
    try:
        result = method.call(state, pod, failure)
    except PluginError as failure:
        return PostFiltered(error(str(failure), method.name))
    found = PostFiltered(result) if isinstance(result, Status) else result
    if problem := _problem(method, found):
        return PostFiltered(error(str(problem), method.name))
    assert isinstance(found, PostFiltered)
    found.status = found.status.by(method.name)
    return found


def _problem(method: PluginMethod, result: Any) -> PluginError | None:
    """Why a result cannot be used, in words for the author of the plugin."""
    if not isinstance(result, PostFiltered):
        return method.returned(result, "a Status or a PostFiltered")
    status: object = result.status
    nominated: object = result.nominated
    if not isinstance(status, Status):
        return method.returned(status, "a Status")
    if status.code in (Code.SKIP, Code.WAIT):
        return method.failed(status.message or f"returned {status.code.label}")
    if not isinstance(nominated, str | None):
        return method.returned(nominated, "the name of a node")
    for values, kind, wanted in (
        (result.victims, Pod, "a tuple of Pods"),
        (result.rejected_by, str, "a tuple of names of plugins"),
    ):
        if not isinstance(values, tuple) or not all(isinstance(each, kind) for each in values):
            return method.returned(values, wanted)
    candidates: object = result.candidates  # Those of our own plugins are found when they are read.
    if isinstance(candidates, tuple | list):
        if not all(isinstance(each, Candidate) for each in candidates):
            return method.returned(candidates, "a sequence of Candidates")
    elif not isinstance(candidates, Sequence):
        return method.returned(candidates, "a sequence of Candidates")
    if not invoke.are_requests(result.requests):
        return method.returned(result.requests, "a tuple of requests")
    return None


def combined(results: Iterable[PostFiltered]) -> PostFiltered:
    """The first result that did something, or reports that nothing can be done; else all of them.

    All requests are carried out, also those of a plugin that did not help.
    """
    reasons: list[str] = []
    requests: tuple[Request, ...] = ()
    first = ""
    nominated: str | None = KEEP
    rejected_by: tuple[str, ...] = ()
    for result in results:
        status = result.status
        requests = result.requests = requests + result.requests
        rejected_by = result.rejected_by = rejected_by + result.rejected_by
        if status.code not in GOES_ON:
            return result
        if status.reasons:
            first = first or status.plugin
            reasons += status.reasons
        if result.nominated is not KEEP:
            nominated = result.nominated
    status = unschedulable(*reasons).by(first)
    return PostFiltered(status, nominated, requests, rejected_by=rejected_by)
