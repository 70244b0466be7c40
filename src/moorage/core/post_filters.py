"""The post_filter plugins of a profile, run for a pod that fits no node."""

from collections.abc import Iterable

from moorage.api.pod import Pod
from moorage.api.server_requests import Request
from moorage.errors import PluginError
from moorage.framework.invoke import PluginMethod, measured
from moorage.framework.post_filter import KEEP, NoFeasibleNode, PostFiltered
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
    if isinstance(result, Status):
        result = PostFiltered(result)
    if not isinstance(result, PostFiltered):
        text = f"returned {result!r}, which is neither a Status nor a PostFiltered"
        return PostFiltered(error(method.error_text(text), method.name))
    result.status = result.status.by(method.name)
    return result


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
