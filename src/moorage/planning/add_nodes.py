"""The fewest nodes of given templates until everything fits.

Each try packs the whole cluster with some numbers of new nodes. The search begins at a lower bound,
and the pods that are left after a try determine the next number. First each template is tried
alone; then equal numbers of all, from which unneeded nodes are removed, template by template, in a
few orders. With one template the answer is the scheduler's own optimum; with several it is a good
one, and the lower bound says how good. With prices, the cheapest mix is searched for instead: see
`cheapest_mix`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from moorage.api import config as configuration
from moorage.api import manifests
from moorage.api.devices import ResourceSlice
from moorage.api.meta import KubeObject
from moorage.errors import InputError
from moorage.framework.registry import Registry
from moorage.planning import bounds, cheapest_mix, node_templates
from moorage.planning.cheapest_mix import CheapestMix, Demand, MixCost, MixSearch
from moorage.planning.device_bounds import DeviceBounds
from moorage.planning.input_cluster import InputCluster, Objects, without_preemption
from moorage.planning.node_templates import NewNodeTemplate
from moorage.planning.packing import Packing
from moorage.planning.prices import PriceList

# How many nodes of each template.
Counts = tuple[int, ...]
OnTry = Callable[[int], None]

# Without a given number of tries, the search for a cheaper mix places about so many pods.
MOST_PLACED = 100_000
FEWEST_TRIES, MOST_TRIES = 10, 500


@dataclass(frozen=True, slots=True)
class AddedNodes:
    """The numbers of new nodes per template with which everything fits."""

    counts: Mapping[str, int]
    lower_bound: int
    # How many pods had no node before, and the pods that fit on no number of new nodes.
    pending_before: int
    impossible: Mapping[str, str]
    # The nodes of the pods that had none before.
    placements: Mapping[str, str]
    tries: int
    # If prices are given: what the new nodes cost.
    cost: MixCost | None = None

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def is_optimal(self) -> bool:
        """Whether the number is known to be the least possible."""
        return self.total == self.lower_bound

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "nodes": dict(self.counts),
            "total": self.total,
            "lowerBound": self.lower_bound,
            "optimal": self.is_optimal,
            "pendingBefore": self.pending_before,
            "impossible": dict(self.impossible),
            "placements": dict(self.placements),
            "tries": self.tries,
            **({} if self.cost is None else {"cost": self.cost.to_dict()}),
        }


class NodeCountSearch:
    """Packs the cluster with varying numbers of new nodes; remembers which were enough."""

    def __init__(
        self,
        cluster: InputCluster,
        templates: Sequence[NewNodeTemplate],
        seed: int,
        on_try: OnTry | None,
    ) -> None:
        self.templates = templates
        self.tries = 0
        # Pods that are left out of the search.
        self.impossible: dict[str, str] = {}
        self._cluster = cluster
        self._config = without_preemption(cluster.config)
        self._registry = Registry()  # Plugins are loaded once, not for every try.
        self._seed = seed
        self._on_try = on_try
        # The pods that need a node.
        self.pending = cluster.pending
        self._known: dict[Counts, int] = {}
        # The latest packing with which everything fits: usually it is the answer.
        self._fitting: tuple[Counts, Packing] | None = None
        self._lacking = self._missing()

    def leave_out(self, impossible: Mapping[str, str]) -> None:
        """Leave these pods out of the search."""
        self.impossible |= impossible
        self.pending = tuple(pod for pod in self.pending if pod.key not in self.impossible)
        self._lacking = self._missing()
        self._known.clear()
        self._fitting = None

    @property
    def lower_bound(self) -> int:
        """The least possible number of nodes, of any template."""
        return bounds.fewest(self._lacking, self._largest()) or 0

    def bound_of(self, index: int) -> int:
        """The same for one template alone."""
        return bounds.fewest(self._lacking, self._largest([index])) or 0

    def demands(self) -> list[Demand]:
        """What new nodes have to provide in every placement."""
        cluster, rooms = self._cluster, [template.room for template in self.templates]
        sums = [
            Demand(amount, tuple(room[name] for room in rooms))
            for name, amount in self._lacking.items()
            if amount > 0
        ]
        return sums + cheapest_mix.demands(self.pending, cluster.nodes, cluster.running, rooms)

    def lacking(self, counts: Counts) -> int:
        """An estimate of how many more nodes are needed; 0 if everything fits."""
        if counts not in self._known:
            self._known[counts] = self._short(counts) or self._try(counts)
        return self._known[counts]

    def fewest(self, counts: Callable[[int], Counts], low: int, high: int) -> Counts | None:
        """The counts for the smallest number from low to high with which everything fits."""
        found = bounds.smallest(lambda number: self.lacking(counts(number)), low, high)
        return None if found is None else counts(found)

    def pack(self, counts: Counts) -> Packing:
        """The packed cluster with these numbers of new nodes."""
        if self._fitting is not None and self._fitting[0] == counts:
            return self._fitting[1]
        packing = self._packing(counts)
        packing.pack()
        if not packing.left:
            self._fitting = (counts, packing)
        return packing

    def _try(self, counts: Counts) -> int:
        self.tries += 1
        if self._on_try is not None:
            self._on_try(sum(counts))
        packing = self.pack(counts)
        left = tuple(packing.waiting)
        return max(1, bounds.fewest(bounds.requested(left), self._largest()) or 1) if left else 0

    def _packing(self, counts: Counts) -> Packing:
        cluster = self._cluster
        new: list[KubeObject] = []
        for template, count in zip(self.templates, counts, strict=True):
            new += template.objects(count)
        objects = (*cluster.others, *cluster.nodes, *new, *cluster.running, *self.pending)
        return Packing(objects, self._config, seed=self._seed, registry=self._registry)

    def _missing(self) -> dict[str, int]:
        """The requests of the pending pods beyond what is free."""
        cluster = self._cluster
        # Device classes that come with the templates have devices of nodes that exist, too.
        classes = [obj for template in self.templates for obj in template.objects(0)]
        devices = DeviceBounds([*cluster.others, *classes])
        slices = (obj for obj in cluster.others if isinstance(obj, ResourceSlice))
        total = bounds.requested(self.pending) + devices.requested(self.pending)
        free = bounds.free(cluster.nodes, cluster.running) + devices.free(slices)
        return {name: amount - free[name] for name, amount in total.items()}

    def _short(self, counts: Counts) -> int:
        """How many more nodes are needed by resources alone."""
        both = list(zip(self.templates, counts, strict=True))
        still = {
            name: amount - sum(template.room[name] * count for template, count in both)
            for name, amount in self._lacking.items()
        }
        return bounds.fewest(still, self._largest()) or 0

    def _largest(self, which: Sequence[int] | None = None) -> dict[str, int]:
        """The most of each resource that one new node has, of some templates or of all."""
        largest: dict[str, int] = {}
        for index in range(len(self.templates)) if which is None else which:
            for name, amount in self.templates[index].room.items():
                largest[name] = max(largest.get(name, 0), amount)
        return largest


def add_nodes(
    objects: Objects,
    templates: Objects,
    config: configuration.Source = None,
    *,
    seed: int = 0,
    prices: PriceList | None = None,
    most_tries: int | None = None,
    on_try: OnTry | None = None,
) -> AddedNodes:
    """The fewest nodes of `templates` (Nodes or NodePools) until every pod has a node.

    `objects` may have no node: then the answer is the size of a new cluster. With prices it is the
    cheapest mix of templates; `most_tries` limits how often the cluster is packed to find it.
    """
    cluster = InputCluster.of(objects, config, nodes_follow=True)
    candidates = node_templates.read(manifests.read(templates).everything, cluster)
    priced = None if prices is None else _prices(candidates, prices)
    search = NodeCountSearch(cluster, candidates, seed, on_try)
    none = (0,) * len(candidates)
    before = search.pack(none).left
    if not before:
        cost = None if priced is None else MixCost(priced, Decimal(0), Decimal(0))
        return AddedNodes(_named(candidates, none), 0, 0, {}, {}, search.tries, cost)
    search.leave_out(_impossible(cluster, candidates, before, seed))
    counts, cost = _fewest(search), None
    if priced is not None:
        counts, cost = _cheapest(search, counts, priced, most_tries)
    final = search.pack(counts)
    impossible = search.impossible | final.left
    # What is missing may be something else than room: then the sums need no node at all.
    least = int(not before.keys() <= impossible.keys())
    return AddedNodes(
        counts=_named(candidates, counts),
        lower_bound=max(search.lower_bound, least),
        pending_before=len(before),
        impossible={key: impossible[key] for key in before if key in impossible},
        placements={key: final.placed[key] for key in before if key in final.placed},
        tries=search.tries,
        cost=cost,
    )


def _prices(templates: Sequence[NewNodeTemplate], prices: PriceList) -> dict[str, Decimal]:
    """The price of each template; refuses a template without one."""
    found: dict[str, Decimal] = {}
    for template in templates:
        price = prices.price(template.nodes(1)[0])
        if price is None:
            raise InputError(f"template {template.name}: has no price")
        found[template.name] = price
    return found


def _cheapest(
    search: NodeCountSearch, fewest: Counts, prices: Mapping[str, Decimal], most_tries: int | None
) -> tuple[Counts, MixCost]:
    """The cheapest mix that was found, and whether one may be cheaper."""
    each = list(prices.values())
    mixes = MixSearch(each, search.demands())
    if most_tries is None:
        placed = MOST_PLACED // max(1, len(search.pending))
        most_tries = min(max(placed, FEWEST_TRIES), MOST_TRIES)
    known = fewest

    def try_mixes(most: int) -> CheapestMix:
        return mixes.run(lambda counts: not search.lacking(counts), known, most)

    # Small problems are solved with a few tries. For others a good mix is found first, so that
    # fewer mixes are cheaper than the best known one; tries are not repeated.
    found = try_mixes(min(FEWEST_TRIES, most_tries))
    if found.counts is None and mixes.price(known) != found.at_least:
        known = min(_known_mixes(search, mixes, fewest, each), key=mixes.cost)
        found = try_mixes(most_tries)
    counts = found.counts or known
    return counts, MixCost(prices, mixes.price(counts), found.at_least)


def _known_mixes(
    search: NodeCountSearch, mixes: MixSearch, fewest: Counts, prices: Sequence[Decimal]
) -> Iterator[Counts]:
    """Good mixes: the fewest nodes, each template alone, the cheapest by sums and some more."""
    yield fewest
    high = search.lower_bound + len(search.pending)
    none = (0,) * len(prices)
    for index in range(len(prices)):
        alone = search.fewest(partial(_with, none, index), search.bound_of(index), high)
        if alone is not None:
            yield alone
    by_sums = mixes.run(lambda _: True, fewest, MOST_TRIES).counts
    if by_sums is None:
        return
    more = [search.fewest(partial(_plus, by_sums, index), 0, high) for index in range(len(prices))]
    enough = min((each for each in more if each is not None), key=mixes.cost, default=None)
    if enough is not None:
        dearest_first = sorted(range(len(prices)), key=lambda index: -prices[index])
        yield _reduced(search, enough, dearest_first, None) or enough


def _impossible(
    cluster: InputCluster, templates: Sequence[NewNodeTemplate], left: Mapping[str, str], seed: int
) -> dict[str, str]:
    """Pods that fit no template, for reasons that more nodes or pods cannot change."""
    new = [obj for template in templates for obj in template.objects(template.sample_size)]
    names = {n.name for template in templates for n in template.nodes(template.sample_size)}
    config = without_preemption(cluster.config)
    packing = Packing((*cluster.others, *cluster.nodes, *new, *cluster.running), config, seed=seed)
    reasons: dict[int, str] = {}
    found: dict[str, str] = {}
    for pod in cluster.pending:
        if pod.key not in left:
            continue
        if pod.spec.scheduler_name not in packing.scheduler.profiles:
            found[pod.key] = left[pod.key]
            continue
        serial = packing.scheduler.templates.of(pod).serial
        if serial not in reasons:
            reasons[serial] = packing.refusal(pod, names)
        if reasons[serial]:
            found[pod.key] = reasons[serial]
    return found


def _fewest(search: NodeCountSearch) -> Counts:
    """The best numbers found; pods that fit on no number are left out."""
    every = len(search.templates)
    while True:
        if not search.pending:
            return (0,) * every
        # One node per pod, besides those that the bound asks for.
        high = search.lower_bound + len(search.pending)
        best = _alone(search, high)
        if best is None or not (sum(best) == search.lower_bound or _is_largest(search, best)):
            best = _mixed(search, best, high) if every > 1 else best
        if best is not None:
            return best
        search.leave_out(search.pack((high,) * every).left)


def _alone(search: NodeCountSearch, high: int) -> Counts | None:
    """The best numbers with one template alone."""
    none = (0,) * len(search.templates)
    best: Counts | None = None
    for index in range(len(none)):
        most = high if best is None else sum(best) - 1
        best = search.fewest(partial(_with, none, index), search.bound_of(index), most) or best
    return best


def _is_largest(search: NodeCountSearch, best: Counts) -> bool:
    """Whether the one template in use has the most of every resource: others would not help."""
    chosen = next(t for t, count in zip(search.templates, best, strict=True) if count)
    return all(
        amount <= chosen.room[name]
        for template in search.templates
        for name, amount in template.room.items()
    )


def _mixed(search: NodeCountSearch, best: Counts | None, high: int) -> Counts | None:
    """The best numbers with several templates, if better than `best`."""
    every = len(search.templates)
    most = high if best is None else sum(best)
    low = -(-search.lower_bound // every)
    even = search.fewest(lambda number: (number,) * every, low, most)
    if even is None:
        return best
    for order in _orders(search.templates):
        best = _reduced(search, even, order, None if best is None else sum(best)) or best
    return best


def _reduced(
    search: NodeCountSearch, counts: Counts, order: Sequence[int], beat: int | None
) -> Counts | None:
    """Remove unneeded nodes, template by template; None if the total is not below `beat`."""
    for index in order:
        most = counts[index]
        if index == order[-1] and beat is not None:
            most = min(most, beat - 1 - (sum(counts) - counts[index]))
        fewer = search.fewest(partial(_with, counts, index), 0, most)
        if fewer is None:
            return None
        counts = fewer
    return counts


def _with(counts: Counts, index: int, number: int) -> Counts:
    return (*counts[:index], number, *counts[index + 1 :])


def _plus(counts: Counts, index: int, number: int) -> Counts:
    return _with(counts, index, counts[index] + number)


def _orders(templates: Sequence[NewNodeTemplate]) -> list[list[int]]:
    """Smallest first, so that large ones remain; and the other way round."""
    by_size = sorted(range(len(templates)), key=lambda i: sorted(templates[i].room.items()))
    return [by_size, by_size[::-1]]


def _named(templates: Sequence[NewNodeTemplate], counts: Counts) -> dict[str, int]:
    return {t.name: count for t, count in zip(templates, counts, strict=True)}
