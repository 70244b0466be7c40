"""Lower bounds on numbers of nodes from sums of resources, and a search that starts at a bound.

No placement needs fewer nodes. What a bound ignores (that a pod cannot be split, taints, affinity)
can only make it too low.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate

from moorage.api import requests
from moorage.api.node import Node
from moorage.api.pod import Pod

Amounts = Mapping[str, int]


def requested(pods: Iterable[Pod]) -> Counter[str]:
    """The sum of the requests of pods; each pod also counts as one of `pods`."""
    total: Counter[str] = Counter()
    for pod in pods:
        total.update(requests.requested(pod))
        total[requests.PODS] += 1
    return total


def free(nodes: Iterable[Node], pods: Iterable[Pod]) -> Counter[str]:
    """The sum of what is free on nodes; an overcommitted node counts as 0, not as negative."""
    on: dict[str, list[Pod]] = {}
    for pod in pods:
        on.setdefault(pod.node_name, []).append(pod)
    total: Counter[str] = Counter()
    for node in nodes:
        used = requested(on.get(node.name, ()))
        for name, amount in requests.allocatable(node).items():
            total[name] += max(0, amount - used[name])
    return total


def fewest(lacking: Amounts, largest: Amounts) -> int | None:
    """The least number of nodes if each has at most `largest`; None if none is enough."""
    count = 0
    for name, amount in lacking.items():
        if amount > 0:
            each = largest.get(name, 0)
            if each <= 0:
                return None
            count = max(count, -(-amount // each))
    return count


def fewest_of(total: Amounts, sizes: Sequence[Amounts]) -> int:
    """The least number of these nodes, with the largest first for each resource separately."""
    count = 0
    for name, amount in total.items():
        largest_first = sorted((size.get(name, 0) for size in sizes), reverse=True)
        too_few = sum(offered < amount for offered in accumulate(largest_first, initial=0))
        count = max(count, min(too_few, len(sizes)))
    return count


def smallest(lacking: Callable[[int], int], low: int, high: int) -> int | None:
    """The smallest number from `low` to `high` for which nothing is lacking; None if there is none.

    `lacking(number)` is 0 if the number is enough, else an estimate of how many more are needed.
    Each call may take seconds, so the search follows the estimate with growing steps and then
    bisects the last step. It assumes that if a number is enough, so are all larger ones. Where a
    scheduler breaks that assumption, the result is still enough, and one less is not.
    """
    if low > high:
        return None
    number, fails, step = low, low - 1, 1
    while more := lacking(number):
        fails = number
        if number == high:
            return None
        number = min(number + max(more, step), high)
        step *= 2
    while number - fails > 1:
        middle = (number + fails) // 2
        if lacking(middle):
            fails = middle
        else:
            number = middle
    return number
