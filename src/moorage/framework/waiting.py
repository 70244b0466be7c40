"""WaitingPod: a pod for which permit plugins returned `wait`; allow it, or reject it.

The first signal wins. The core acts on it in its next step.
"""

from dataclasses import dataclass, field

from moorage.api.config import durations
from moorage.api.pod import Pod
from moorage.framework.status import SUCCESS, Status, error, unschedulable


@dataclass(slots=True)
class WaitingPod:
    """A pod between permit and binding, with the deadline of each plugin that it waits for."""

    pod: Pod
    node: str
    until: dict[str, float]
    signal: Status | None = field(default=None)

    @property
    def plugins(self) -> list[str]:
        """The plugins that have not allowed it yet."""
        return list(self.until)

    @property
    def deadline(self) -> float:
        """When the first of them times out."""
        return min(self.until.values())

    def allow(self, plugin: str) -> None:
        """One plugin allows the pod; binding continues when all have."""
        if self.signal is None:
            self.until.pop(plugin, None)
            if not self.until:
                self.signal = SUCCESS

    def reject(self, plugin: str, reason: str) -> bool:
        """Reject the pod; False if it was already allowed or rejected."""
        return self._signal(unschedulable(reason).by(plugin))

    def preempt(self, reason: str) -> bool:
        """Reject the pod for a preempting one; False if it was already allowed or rejected."""
        return self._signal(error(f"waiting on permit for pod: {reason}"))

    def expire(self, now: float, started_at: float) -> None:
        """Reject the pod if a plugin's timeout is over."""
        plugin, until = min(self.until.items(), key=lambda item: item[1], default=("", now))
        if plugin and until <= now:
            # Whole microseconds: the resolution of a float clock that counts from 1970.
            waited = durations.text(round(until - started_at, 6))
            reason = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
            self.reject(plugin, reason)

    def _signal(self, status: Status) -> bool:
        if self.signal is not None:
            return False
        self.signal = status
        return True
