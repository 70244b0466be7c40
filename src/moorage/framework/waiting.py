"""WaitingPod: a pod that permit plugins asked to wait; allow it, or reject it.

The first signal wins. What follows from it is carried out by the core at its next step.
"""

from dataclasses import dataclass, field

from moorage.api.config import durations
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
        plugin, until = min(self.until.items(), key=lambda item: item[1], default=("", now))
        if plugin and until <= now:
            # Whole microseconds: a clock that counts from 1970 is no finer than that.
            waited = durations.text(round(until - started_at, 6))
            reason = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
            self.reject(plugin, reason)

    def _signal(self, status: Status) -> bool:
        if self.signal is not None:
            return False
        self.signal = status
        return True
