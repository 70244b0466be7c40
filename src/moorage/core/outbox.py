"""Outbox: what is asked of the world, each under a ticket, and who waits for which answer."""

from enum import Enum

from moorage.api.pod import Pod
from moorage.core.effects import Effect, Ticket
from moorage.framework.effects import EmitEvent, PodRef, Request


class Purpose(Enum):
    """Why something was asked of the world."""

    BINDING = "a binding cycle waits for it"
    LOOK_UP = "to know whether a pod is bound"
    PREEMPTION = "somebody's victims are asked to leave"
    INFORM = "for others to see"


class Outbox:
    """What the verb that is under way has asked so far."""

    def __init__(self) -> None:
        # Asked and not handed over yet; whoever takes them leaves an empty list.
        self.effects: list[Effect] = []
        # Why each was asked, and the name under which somebody waits for its outcome.
        self.tickets: dict[Ticket, tuple[Purpose, str]] = {}
        self._last_ticket = 0

    def ask(self, request: Request, purpose: Purpose = Purpose.INFORM, name: str = "") -> None:
        """Ask for something; the outcome comes back under the name, unless nobody waits for it."""
        ticket: Ticket = self._last_ticket + 1  # type: ignore[assignment]  # a call less
        self._last_ticket = ticket
        if purpose is not Purpose.INFORM:
            self.tickets[ticket] = (purpose, name)
        self.effects.append(Effect(ticket, request))

    def emit(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Let those who look after a pod know, by an Event in its scheduler's name."""
        reporter = pod.spec.scheduler_name
        self.ask(EmitEvent(PodRef.of(pod), type_, reason, action, note, reporter))
