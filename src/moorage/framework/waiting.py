"""WaitingPod: a pod that permit plugins asked to wait; allow it, or reject it.

The first signal wins. What follows from it is carried out by the core at its next step.
"""

from dataclasses import dataclass, field

from moorage.api.pod import Pod
from moorage.framework.status import SUCCESS, Status, error, unschedulable


@dataclass(slots=True)
class WaitingPod:
    """A pod between permit and binding, and whom it waits for until when."""

    pod: Pod
    node: str
    until: dict[str, float]
    signal: Status | None = field(default=None)

    @property
    def plugins(self) -> list[str]:
        """Those who have not allowed it yet."""
        return list(self.until)

    @property
    def deadline(self) -> float:
        """When the first of them has waited long enough."""
        return min(self.until.values())

    def allow(self, plugin: str) -> None:
        """One plugin agrees; the pod goes on when all have."""
        if self.signal is None:
            self.until.pop(plugin, None)
            if not self.until:
                self.signal = SUCCESS

    def reject(self, plugin: str, reason: str) -> bool:
        """Send the pod back; False if its fate was already decided."""
        return self._signal(unschedulable(reason).by(plugin))

    def preempt(self, reason: str) -> bool:
        """Take the pod's place for another; False if its fate was already decided."""
        return self._signal(error(f"waiting on permit for pod: {reason}"))

    def expire(self, now: float, started_at: float) -> None:
        """Reject the pod if somebody has waited long enough."""
        for plugin, until in self.until.items():
            if until <= now:
                waited = go_duration(until - started_at)
                reason = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
                self.reject(plugin, reason)
                return

    def _signal(self, status: Status) -> bool:
        if self.signal is not None:
            return False
        self.signal = status
        return True


def go_duration(seconds: float) -> str:
    """A span as Kubernetes prints it: `10s`, `1m0s`, `1h2m3s`, `500ms`."""
    if seconds and abs(seconds) < 1:
        return f"{round(seconds * 1000, 6):g}ms"
    minutes, rest = divmod(round(seconds, 9), 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{round(rest, 9):g}s"
    if minutes or hours:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text
