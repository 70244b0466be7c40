"""Asking a plugin at a point that concerns one pod: its answer is signed, and trouble named.

Filters and scores, which concern many nodes, are asked in `calls`.
"""

from collections.abc import Callable
from typing import Any

from moorage.api.pod import Pod
from moorage.errors import PLUGIN_EXCEPTIONS
from moorage.framework import calls, points
from moorage.framework.awaiting import Awaiting
from moorage.framework.effects import Request
from moorage.framework.post_filter import PostFiltered, Refusal
from moorage.framework.state import CycleState
from moorage.framework.status import Code, Status, error

# What a plugin may answer where, besides success and a refusal.
ALSO = {
    "permit": (Code.WAIT,),
    "pre_bind_pre_flight": (Code.SKIP,),
    "bind": (Code.SKIP,),
}


def ask(plugin: Any, method: str, *args: Any) -> Status:
    """A plugin's Status on something."""
    answer = call(plugin, method, *args)
    return answer if isinstance(answer, Status) else strange(plugin, method, answer)


def call(plugin: Any, method: str, *args: Any) -> Any:
    """Call a plugin and sign its answer; trouble becomes an error that names it."""
    try:
        answer = getattr(plugin, method)(*args)
    except PLUGIN_EXCEPTIONS as trouble:  # Fails this pod only.
        return error(_running(plugin, method) + calls.describe(trouble), plugin.name)
    if not isinstance(answer, Status):
        return answer
    if answer.is_success or answer.is_rejected or answer.code in ALSO.get(method, ()):
        return answer.by(plugin.name)
    text = answer.message or f"returned {answer.code.label}"
    return error(_running(plugin, method) + text, plugin.name)


def strange(plugin: Any, method: str, answer: Any) -> Status:
    text = f"{_running(plugin, method)}returned {answer!r}, which is not a Status"
    return error(text, plugin.name)


def _running(plugin: Any, method: str) -> str:
    """How Kubernetes begins the tale of a plugin's trouble."""
    if method == "pre_bind_pre_flight":
        return f'running PreBindPreFlight "{plugin.name}": '
    if method == "pre_bind_next":
        method = "pre_bind"  # To those who read it, it is one and the same.
    point = "".join(word.capitalize() for word in method.split("_"))
    return f'running {point} plugin "{plugin.name}": '


def pre_bound(plugin: Any, method: str, answer: Any) -> Status | Awaiting | tuple[Request, ...]:
    if isinstance(answer, Awaiting) and points.follows_up(plugin):
        return answer
    if isinstance(answer, Status) or _are_requests(answer):
        return answer  # type: ignore[no-any-return]  # just made sure of
    return (answer,) if _are_requests((answer,)) else strange(plugin, method, answer)


def _are_requests(answer: Any) -> bool:
    return isinstance(answer, tuple) and all(isinstance(request, Request) for request in answer)


def post_filter(
    plugin: Any, state: CycleState, pod: Pod, refusal: Refusal
) -> Callable[[], PostFiltered]:
    def ask() -> PostFiltered:
        try:
            answer = plugin.post_filter(state, pod, refusal)
        except PLUGIN_EXCEPTIONS as trouble:  # As above.
            text = f'running PostFilter plugin "{plugin.name}": {calls.describe(trouble)}'
            return PostFiltered(error(text, plugin.name))
        if isinstance(answer, Status):
            answer = PostFiltered(answer)
        if not isinstance(answer, PostFiltered):
            text = (
                f'running PostFilter plugin "{plugin.name}": returned {answer!r}, which is '
                "neither a Status nor a PostFiltered"
            )
            return PostFiltered(error(text, plugin.name))
        answer.status = answer.status.by(plugin.name)
        return answer

    return ask
