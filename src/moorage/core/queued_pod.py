"""QueuedPod: a pod on its way through the queue, with what its attempts so far have taught."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from moorage.api.pod import Pod
from moorage.framework.template import PodTemplate


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod and its history; one object for as long as the pod waits or is being tried."""

    pod: Pod
    # When the pod came, or came back after a failed attempt.
    queued_at: float
    # What the pod has in common with its equals, once somebody worked it out.
    template: PodTemplate | None = None
    # When it first entered the active queue.
    first_tried_at: float | None = None
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    # A whole second, -inf for "not at all"; None until somebody asks.
    backoff_until: float | None = None
    # Who refused the last attempt; those in `pending_plugins` wait for something outside.
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    # Who keeps the pod from being tried at all; empty if nobody does.
    gating_plugin: str = ""
    # What the world was last asked to show: reason and message, and the promised node.
    told: tuple[str, str] | None = None
    told_node: str | None = None
    was_flushed: bool = False
    flushed_at: float | None = None
    # The identity in the queue, and the one in flight; a newer version of the pod has the same.
    key: str = field(init=False)
    uid: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = self.pod.key
        self.uid = self.pod.uid

    @property
    def is_gated(self) -> bool:
        return self.gating_plugin != ""

    @property
    def has_rejectors(self) -> bool:
        """Whether plugins refused the pod; without any, its attempt failed by trouble."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    @property
    def resting_since(self) -> float:
        """From when on its rest counts that ends with a flush."""
        return self.queued_at if self.flushed_at is None else max(self.queued_at, self.flushed_at)

    def become(self, pod: Pod) -> None:
        """The pod has changed."""
        if pod is not self.pod:
            self.pod, self.template = pod, None

    def rejected_by(self, unschedulable: Iterable[str] = (), pending: Iterable[str] = ()) -> None:
        """Take note of who refused the attempt that just ended; nobody means trouble."""
        self.unschedulable_plugins = set(unschedulable)
        self.pending_plugins = set(pending)
        self.gating_plugin = ""

    def failed(self, now: float) -> None:
        """Count an attempt that did not end well."""
        if self.has_rejectors:
            self.unschedulable_count += 1
            self.consecutive_errors = 0
        else:
            self.consecutive_errors += 1
        self.queued_at = now
        self.backoff_until = None
        self.was_flushed = False
        self.flushed_at = None
