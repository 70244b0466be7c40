"""Many nodes' refusals in one sentence, as Kubernetes words it.

0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s).
"""

from collections import Counter
from collections.abc import Iterable

from moorage.framework.status import Status


def summarize(
    nodes: int,
    *,
    pre_filter: str = "",
    rejected: Iterable[tuple[Status, int]] = (),
    absent: Status | None = None,
) -> str:
    """The sentence for statuses with how many nodes have each; all others have `absent`."""
    text = f"0/{nodes} nodes are available:"
    if pre_filter:
        return f"{text} {pre_filter}."
    counts: Counter[str] = Counter()
    explicit = 0
    for status, count in rejected:
        explicit += count
        for reason in status.reasons:
            counts[reason] += count
    if absent is not None and explicit < nodes:
        for reason in absent.reasons:
            counts[reason] += nodes - explicit
    # Sorted as text, so "10 x" comes before "2 y": the reference does it so.
    said = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"{text} {', '.join(said)}." if said else text
