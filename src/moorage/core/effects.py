"""What we ask of the world, each under a ticket, and how it may end."""

from typing import NewType

from msgspec import Struct

from moorage.api.pod import Pod
from moorage.framework.effects import Request

Ticket = NewType("Ticket", int)


class Effect(Struct, frozen=True, gc=False):
    """A request under its ticket; the shell answers with `complete(ticket, outcome)`."""

    ticket: Ticket
    request: Request


class Done(Struct, frozen=True, gc=False, tag=True):
    """It was carried out; a look-up brings the pod, or None if there is none by that UID."""

    pod: Pod | None = None


class Failed(Struct, frozen=True, gc=False, tag=True):
    """It was refused or could not be done, for certain; `missing`: there is no such object."""

    reason: str
    missing: bool = False


class Unknown(Struct, frozen=True, gc=False, tag=True):
    """Nobody knows whether it was carried out: the connection broke, the time was over."""

    reason: str


Outcome = Done | Failed | Unknown
