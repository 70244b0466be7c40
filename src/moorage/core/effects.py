"""Effects: requests to the outside, each under a ticket, and how they may end."""

from typing import Final, NewType

from msgspec import Struct

from moorage.api.devices import ResourceClaim
from moorage.api.pod import Pod
from moorage.api.server_requests import EmitEvent, PodRef, Request

Ticket = NewType("Ticket", int)


class Effect(Struct, frozen=True, gc=False):
    """A request under its ticket; the shell calls `complete(ticket, outcome)` when it ends."""

    ticket: Ticket
    request: Request


class Done(Struct, frozen=True, gc=False, tag=True):
    """It was carried out.

    A lookup returns the pod, or None if no pod has that UID; a request that creates or changes a
    device claim returns the claim as it is afterwards.
    """

    pod: Pod | None = None
    claim: ResourceClaim | None = None


class Failed(Struct, frozen=True, gc=False, tag=True):
    """It was certainly not carried out; `missing`: there is no such object."""

    reason: str
    missing: bool = False


class Unknown(Struct, frozen=True, gc=False, tag=True):
    """It may have been carried out or not: the connection broke, or the request timed out."""

    reason: str


Outcome = Done | Failed | Unknown


class Purpose:
    """Which part of the scheduler takes an outcome.

    Not an Enum: its attributes would be looked up slowly, several times per pod.
    """

    BINDING: Final = "a binding cycle continues"
    LOOK_UP: Final = "the lookup of a pod ends"
    PREEMPTION: Final = "a preemption continues"
    UNDO: Final = "what a failed binding wrote is undone"
    POD_GROUP: Final = "the status of a pod group is patched"
    TORN_GANG: Final = "members of a gang that cannot be completed are evicted"


class Outbox:
    """The effects of the verb in progress, and the tickets whose outcome a part waits for."""

    def __init__(self) -> None:
        # Not returned to the shell yet; the verb takes the list and leaves an empty one.
        self.effects: list[Effect] = []
        # Purpose and name (most often a pod's UID) of each request with a waiting part.
        self.tickets: dict[Ticket, tuple[str, str]] = {}
        self._last_ticket = 0

    def add(self, request: Request, purpose: str | None = None, name: str = "") -> None:
        """Request something; its outcome goes to the purpose's part, if any, with the name."""
        ticket: Ticket = self._last_ticket + 1  # type: ignore[assignment]  # saves a call
        self._last_ticket = ticket
        if purpose is not None:
            self.tickets[ticket] = (purpose, name)
        self.effects.append(Effect(ticket, request))

    def emit(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Emit an Event about a pod, reported by the pod's scheduler."""
        meta, reporter = pod.metadata, pod.spec.scheduler_name
        ref = PodRef(meta.namespace, meta.name, meta.uid)
        self.add(EmitEvent(ref, type_, reason, action, note, reporter))
