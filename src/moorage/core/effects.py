"""Effects: requests to the outside, each under a ticket, and how they may end."""

from typing import NewType

from msgspec import Struct

from moorage.api.devices import ResourceClaim
from moorage.api.pod import Pod
from moorage.api.server_requests import Request

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
