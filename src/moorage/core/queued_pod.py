"""QueuedPod: a pod in the scheduling queue, with the results of its attempts so far."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from moorage.api.pod import Pod
from moorage.core.queue_states import NEW
from moorage.nodes.template import PodTemplate, are_alike


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod and its history; one object for as long as the pod waits or is being tried."""

    pod: Pod
    # When the pod was added, or returned after a failed attempt.
    queued_at: float
    # The pod's template, once computed.
    template: PodTemplate | None = None
    # When it first entered the active queue.
    first_tried_at: float | None = None
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    # A whole second, -inf for no backoff; None until computed.
    backoff_until: float | None = None
    # The plugins that rejected the last attempt; `pending_plugins` wait for something outside.
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    # The pre_enqueue plugin that rejects the pod; empty if none does.
    gating_plugin: str = ""
    # What the last patches of the pod's status wrote: reason and message, and nominated node.
    patched_condition: tuple[str, str] | None = None
    patched_node: str | None = None
    # In flight: the number of cluster events before its pop.
    events_before: int = 0
    was_flushed: bool = False
    flushed_at: float | None = None
    state: str = NEW  # See queue_states.py.
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
        """Whether plugins rejected the pod; without any, its attempt ended in an error."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    @property
    def unschedulable_since(self) -> float:
        """When the wait began that ends with a flush."""
        return self.queued_at if self.flushed_at is None else max(self.queued_at, self.flushed_at)

    def update(self, pod: Pod) -> None:
        """Take a newer version of the pod."""
        if pod is not self.pod:
            if self.template is not None and not are_alike(pod, self.pod):
                self.template = None
            self.pod = pod

    def rejected_by(self, unschedulable: Iterable[str] = (), pending: Iterable[str] = ()) -> None:
        """Set the plugins that rejected the attempt that just ended; none means an error."""
        self.unschedulable_plugins = set(unschedulable)
        self.pending_plugins = set(pending)
        self.gating_plugin = ""

    def failed(self, now: float) -> None:
        """Count a failed attempt."""
        if self.has_rejectors:
            self.unschedulable_count += 1
            self.consecutive_errors = 0
        else:
            self.consecutive_errors += 1
        self.queued_at = now
        self.backoff_until = None
        self.was_flushed = False
        self.flushed_at = None
