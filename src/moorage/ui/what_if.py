"""What if a node is drained: the answer of `planning` on a snapshot, and its command line."""

import shlex
from typing import Any

from moorage.planning.drain import drain as answer_drain
from moorage.ui.snapshot import ClusterSnapshot

MOST_LISTED = 100


def drain(snapshot: ClusterSnapshot, name: str) -> dict[str, Any]:
    """The pods that would move from a node, and those that would be pending, blocked or lost."""
    snapshot.node(name)  # Raises InputError for an unknown node.
    found = answer_drain(snapshot.objects, [name], config=snapshot.config)
    remaining = {
        kind: [{"pod": each.pod, "reason": each.reason} for each in pods]
        for kind, pods in (("blocked", found.blocked), ("stays", found.stays), ("lost", found.lost))
    }
    moves = [{"pod": move.pod, "to": move.to} for move in found.moves if move.to]
    pending = [{"pod": move.pod, "reason": move.message} for move in found.pending]
    pending += [{"pod": pod, "reason": reason} for pod, reason in found.displaced.items()]
    preempted = [{"pod": each.pod, "reason": f"for {each.by}"} for each in found.evictions]
    lists = {"moves": moves, "pending": pending, **remaining, "preempted": preempted}
    return {
        "version": snapshot.version,
        "node": name,
        "clean": found.is_clean,
        "counts": {kind: len(pods) for kind, pods in lists.items()},
        **{kind: pods[:MOST_LISTED] for kind, pods in lists.items()},
        "command": shlex.join(["moorage", "simulate", "drain", name, *snapshot.options]),
    }
