"""Why not: verdicts summed into the sentence people read in `kubectl describe`."""

from dataclasses import dataclass, field

from moorage.framework.status import Code, Status

NO_NODES = "no nodes available to schedule pods"
LONGEST_NOTE = 1024
CUT = " ..."


@dataclass(slots=True)
class Diagnosis:
    """What refused the pod: the text, and the plugins whose cure is waited for."""

    message: str
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)

    def blame(self, status: Status) -> None:
        """Remember who refused; a refusal by PENDING counts in both sets."""
        if status.plugin:
            self.unschedulable_plugins.add(status.plugin)
            if status.code is Code.PENDING:
                self.pending_plugins.add(status.plugin)


def with_post_filter(message: str, post_filter: str) -> str:
    """The sentence with what post_filter plugins had to add."""
    return f"{message} {post_filter}" if post_filter else message


def note(message: str) -> str:
    """A message cut to what an Event can carry."""
    raw = message.encode()
    if len(raw) <= LONGEST_NOTE:
        return message
    return raw[: LONGEST_NOTE - len(CUT)].decode(errors="ignore") + CUT
