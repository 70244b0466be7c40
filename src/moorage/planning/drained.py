"""Drained: what comes of draining nodes: who moves, who stays, who is lost."""

from dataclasses import dataclass
from typing import Any

from msgspec.structs import asdict

from moorage.sim.evictions import Eviction


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that leaves a drained node; without `to`, `message` says why it has no other."""

    pod: str
    source: str
    to: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Stay:
    """A pod that does not leave, and why."""

    pod: str
    node: str
    reason: str
    budgets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drain:
    """What comes of draining nodes."""

    nodes: tuple[str, ...]
    moves: tuple[Move, ...]
    # Kept back by budgets; and those that are not evicted at all.
    blocked: tuple[Stay, ...]
    stays: tuple[Stay, ...]
    # Pods without a controller: once they are gone nobody makes them again.
    lost: tuple[Stay, ...]
    # Pods elsewhere that had to make room, and those of them without a node now.
    evictions: tuple[Eviction, ...]
    displaced: dict[str, str]
    rounds: int
    pending_before: int

    @property
    def pending(self) -> tuple[Move, ...]:
        """Pods that were evicted and have no other node."""
        return tuple(move for move in self.moves if not move.to)

    @property
    def is_clean(self) -> bool:
        """Whether every pod has a node again and nothing is held up or lost."""
        return not (self.pending or self.blocked or self.lost or self.displaced)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "nodes": list(self.nodes),
            "clean": self.is_clean,
            "moves": {
                move.pod: {"from": move.source, "to": move.to or None}
                | ({"message": move.message} if move.message else {})
                for move in self.moves
            },
            "pending": {move.pod: move.message for move in self.pending} | self.displaced,
            "blocked": {stay.pod: _plain(stay, list(stay.budgets)) for stay in self.blocked},
            "stays": {stay.pod: _plain(stay) for stay in self.stays},
            "lost": {stay.pod: _plain(stay) for stay in self.lost},
            "evictions": [asdict(each) for each in self.evictions],
            "rounds": self.rounds,
            "pendingBefore": self.pending_before,
        }


def _plain(stay: Stay, names: list[str] | None = None) -> dict[str, Any]:
    told: dict[str, Any] = {"node": stay.node, "reason": stay.reason}
    return told if names is None else told | {"budgets": names}
