"""Pods that had to leave their node before their time, and who caused it."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from moorage.core.journal import Journal
from moorage.sim import evictions

PREEMPTION, DRAIN, NODE_FAILURE = "preemption", "drain", "node failure"


class Disruption(Struct, frozen=True, kw_only=True):
    """A pod that had to leave: for another pod, or because of its node."""

    pod: str
    node: str
    at: float
    cause: str
    by: str

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def of(journals: Iterable[Journal], others: Iterable[Disruption]) -> list[Disruption]:
    """All of them, oldest first; preemptions are told by the schedulers."""
    found = [
        Disruption(pod=each.pod, node=each.node, at=each.at, cause=PREEMPTION, by=each.by)
        for each in evictions.of(journals)
    ]
    return sorted([*found, *others], key=lambda each: each.at)


def by_cause(disruptions: Iterable[Disruption]) -> list[tuple[str, str, int]]:
    """Who caused how many, the most first: (cause, by, count)."""
    counts = Counter((each.cause, each.by) for each in disruptions)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(cause, by, count) for (cause, by), count in ordered]
