"""What may be on the clock beside the kubelet's own: news, requests and answers on their way.

A scheduler process is known by its number; what is on its way to one that has stopped is lost.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from moorage.core.effects import Effect, Outcome, Ticket
from moorage.core.observations import Observation
from moorage.sim.faults import Fate

Act = Callable[[], object]


class Call(Struct, frozen=True):
    """Somebody outside does something: a scenario, a test."""

    act: Act


class Deliver(Struct, frozen=True):
    """News reaches a scheduler."""

    replica: int
    observation: Observation


class Relist(Struct, frozen=True):
    """A broken watch of a kind is mended by listing everything anew."""

    replica: int
    kind: type[Any]


class Land(Struct, frozen=True):
    """A request reaches the API server."""

    replica: int
    effect: Effect
    fate: Fate


class Answer(Struct, frozen=True):
    """The API server's answer reaches the scheduler."""

    replica: int
    ticket: Ticket
    outcome: Outcome


class Replace(Struct, frozen=True):
    """The leading scheduler is replaced by a new one, which starts from what the cluster shows."""


class Stop(Struct, frozen=True):
    """A scheduler that was replaced notices it at last."""

    replica: int
