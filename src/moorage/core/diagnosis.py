"""Diagnosis: why no node is feasible, as the message that `kubectl describe` shows."""

from dataclasses import dataclass, field

from moorage.errors import PluginError
from moorage.framework.points import FILTER_ERROR
from moorage.framework.status import Code, Status, summarize
from moorage.framework.views.rejections import RejectionCounts

NO_NODES = "no nodes available to schedule pods"
MOST_NOTE_BYTES = 1024
CUT = " ..."


@dataclass(slots=True)
class Diagnosis:
    """The message, and the plugins that rejected the pod."""

    message: str
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)

    def blame(self, status: Status) -> None:
        """Add the plugin of a rejection; a PENDING one is in both sets. Raises for an error."""
        if status.code is Code.ERROR:
            text = FILTER_ERROR.format(plugin=status.plugin, reason=status.message)
            raise PluginError(status.plugin, status.message, text)
        if status.plugin:
            self.unschedulable_plugins.add(status.plugin)
            if status.code is Code.PENDING:
                self.pending_plugins.add(status.plugin)


def by_counts(nodes: int, counts: RejectionCounts) -> Diagnosis:
    """The diagnosis if all nodes were rejected; kept with the counts until they change."""
    key, found = counts.derived
    if key != (counts.version, nodes):
        rejected = counts.histogram
        found = Diagnosis(summarize(nodes, rejected=rejected))
        for status, _ in rejected:
            found.blame(status)
        counts.derived = (counts.version, nodes), found
    return Diagnosis(found.message, {*found.unschedulable_plugins}, {*found.pending_plugins})


def with_post_filter(message: str, post_filter: str) -> str:
    """The message with that of post_filter plugins appended."""
    return f"{message} {post_filter}" if post_filter else message


def note(message: str) -> str:
    """A message cut to the length of an Event's note."""
    raw = message.encode()
    if len(raw) <= MOST_NOTE_BYTES:
        return message
    return raw[: MOST_NOTE_BYTES - len(CUT)].decode(errors="ignore") + CUT
