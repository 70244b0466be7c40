"""Undoing: requests of `unreserve` and `post_filter`, repeated until they are carried out.

A failed binding may have written device claims. Until that is undone, the claims stay held in the
cluster: no other pod gets their devices, and the pod itself is not bound with a claim that is about
to be released.
"""

from collections.abc import Iterable

from moorage.api.devices import ResourceClaim
from moorage.api.server_requests import DeallocateResourceClaim, Request, ResourceClaimRequest
from moorage.core import updates
from moorage.core.effects import Done, Failed, Outcome, Purpose
from moorage.core.state import SchedulerState
from moorage.framework.events import Action, ClusterEvent

RETRY_SECONDS = 1.0


class Undoing:
    """See the module."""

    def __init__(self, state: SchedulerState) -> None:
        self._state = state
        self._requests: dict[str, Request] = {}
        self._due: dict[str, float] = {}
        self._held: set[str] = set()  # Requests for which a claim is held since `begin`.
        self._last = 0

    def __len__(self) -> int:
        return len(self._requests)

    def begin(self, requests: tuple[Request, ...]) -> None:
        """Send requests that undo something."""
        for request in requests:
            self._last += 1
            name = str(self._last)
            self._requests[name] = request
            if isinstance(request, ResourceClaimRequest):
                self._hold(name, request)
            self._send(name)

    def carry_out(self, requests: Iterable[Request]) -> None:
        """Carry out what post_filter plugins request; changes of claims as in `begin`."""
        for request in requests:
            if isinstance(request, ResourceClaimRequest):
                self.begin((request,))
            else:
                self._state.outbox.add(request)

    def _hold(self, name: str, request: ResourceClaimRequest) -> None:
        cluster = self._state.cluster
        # As it was written: the observed version may not have the allocation yet.
        latest = cluster.latest(ResourceClaim, request.key)
        is_same = latest is not None and latest.uid == request.uid
        if is_same and latest is not None and not cluster.is_held(ResourceClaim, request.key):
            cluster.hold(latest, "")
            self._held.add(name)

    def _send(self, name: str) -> None:
        self._state.outbox.add(self._requests[name], Purpose.UNDO, name)

    def completed(self, name: str, outcome: Outcome, now: float) -> None:
        """Take the outcome of such a request."""
        request = self._requests[name]
        # A deallocation that is refused came too late: the claim has changed.
        ends = isinstance(request, DeallocateResourceClaim)
        is_done = isinstance(outcome, Done) or (
            isinstance(outcome, Failed) and (outcome.missing or ends)
        )
        if not is_done:
            self._due[name] = now + RETRY_SECONDS
            return
        del self._requests[name]
        cluster = self._state.cluster
        # The pod's next attempt may hold a claim of the same name by now.
        if isinstance(request, ResourceClaimRequest) and cluster.is_being_undone(
            ResourceClaim, request.key
        ):
            if isinstance(outcome, Done) and outcome.claim is not None:
                cluster.written(outcome.claim)
            else:
                cluster.release(ResourceClaim, request.key)
        self.requeue(now)
        if name in self._held:
            self._held.discard(name)
            self._requeue_users(request, now)

    def _requeue_users(self, request: Request, now: float) -> None:
        """Requeue pods of a claim that was held, whether it changed or not."""
        assert isinstance(request, ResourceClaimRequest)
        known = self._state.cluster.get(ResourceClaim, request.key)
        if known is not None:
            event = ClusterEvent(updates.resource_of(known), Action.UPDATE)
            self._state.queue.move_all(event, None, known, now)

    def requeue(self, now: float) -> None:
        """Requeue pods that may use objects that are no longer held."""
        for held, known in self._state.cluster.take_released():
            event = ClusterEvent(updates.resource_of(held), Action.UPDATE)
            self._state.queue.move_all(event, held, known or held, now)

    def advance(self, now: float) -> None:
        """Repeat the requests that are due."""
        for name in [name for name, at in self._due.items() if at <= now]:
            del self._due[name]
            self._send(name)

    @property
    def deadline(self) -> float | None:
        return min(self._due.values(), default=None)
