"""Undoing: requests of `unreserve`, repeated until they are carried out.

A failed binding may have written device claims. Until that is undone, the claims stay held in the
cluster, so that no other pod gets their devices.
"""

from moorage.api.devices import ResourceClaim
from moorage.api.server_requests import Request, ResourceClaimRequest
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
        self._last = 0

    def __len__(self) -> int:
        return len(self._requests)

    def begin(self, requests: tuple[Request, ...]) -> None:
        """Send requests that undo something."""
        for request in requests:
            self._last += 1
            name = str(self._last)
            self._requests[name] = request
            self._send(name)

    def _send(self, name: str) -> None:
        self._state.outbox.add(self._requests[name], Purpose.UNDO, name)

    def completed(self, name: str, outcome: Outcome, now: float) -> None:
        """Take the outcome of such a request."""
        request = self._requests[name]
        is_done = isinstance(outcome, Done) or (isinstance(outcome, Failed) and outcome.missing)
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
