"""Lower bounds by arithmetic: as if pods were water, and only the sums counted.

No way of placing pods can do with less, however clever it is. What a bound leaves out (that pods
come in one piece, that taints and affinities keep them apart) makes it lower, never wrong.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from moorage.api import requests
from moorage.api.node import Node
from moorage.api.pod import Pod

Amounts = Mapping[str, int]


def asked_for(pods: Iterable[Pod]) -> Counter[str]:
    """What pods ask for together; each takes one of a node's places for pods."""
    total: Counter[str] = Counter()
    for pod in pods:
        total.update(requests.requested(pod))
        total[requests.PODS] += 1
    return total


def offered(nodes: Iterable[Node]) -> Counter[str]:
    """What nodes have together."""
    total: Counter[str] = Counter()
    for node in nodes:
        total.update(dict(requests.allocatable(node)))
    return total


def free(nodes: Iterable[Node], pods: Iterable[Pod]) -> Counter[str]:
    """What is left on nodes beside the pods on them; one that is overfull owes nobody anything."""
    on: dict[str, list[Pod]] = {}
    for pod in pods:
        on.setdefault(pod.node_name, []).append(pod)
    total: Counter[str] = Counter()
    for node in nodes:
        taken = asked_for(on.get(node.name, ()))
        for name, amount in requests.allocatable(node).items():
            total[name] += max(0, amount - taken[name])
    return total


def fewest(lacking: Amounts, largest: Amounts) -> int | None:
    """How many nodes it takes at least, if each has at most the largest; None: never enough."""
    count = 0
    for name, amount in lacking.items():
        if amount > 0:
            each = largest.get(name, 0)
            if each <= 0:
                return None
            count = max(count, -(-amount // each))
    return count


def fewest_of(wanted: Amounts, sizes: Sequence[Amounts]) -> int:
    """How many of these nodes it takes at least, the largest first for each resource by itself."""
    count = 0
    for name, amount in wanted.items():
        if amount <= 0:
            continue
        total = 0
        for place, size in enumerate(
            sorted((size.get(name, 0) for size in sizes), reverse=True), 1
        ):
            total += size
            if total >= amount:
                count = max(count, place)
                break
        else:
            count = len(sizes)
    return count
