"""Trials: a cluster packed with more and more, or fewer and fewer, nodes of some templates."""

from collections.abc import Callable, Mapping, Sequence

from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.framework.registry import Registry
from moorage.planning import bounds, search
from moorage.planning.node_templates import NodeTemplate
from moorage.planning.packing import Packing
from moorage.planning.situation import Situation, without_preemption

# How many nodes of each template.
Counts = tuple[int, ...]
Tried = Callable[[int], None]


class Trials:
    """Packs the cluster with more and more, or fewer and fewer, new nodes."""

    def __init__(
        self,
        situation: Situation,
        templates: Sequence[NodeTemplate],
        seed: int,
        on_try: Tried | None,
    ) -> None:
        self.templates = templates
        self.tries = 0
        # Pods that are not asked for any more.
        self.impossible: dict[str, str] = {}
        self._situation = situation
        self._config = without_preemption(situation.config)
        self._registry = Registry()  # Plugins are looked for once, not for every try.
        self._seed = seed
        self._on_try = on_try
        self._pending = situation.pending
        self._known: dict[Counts, int] = {}
        # The latest packing with which everything fits: most often it is the answer.
        self._fitting: tuple[Counts, Packing] | None = None
        self._lacking = self._sum_up()

    def leave_out(self, impossible: Mapping[str, str]) -> None:
        """Do not ask for these pods any more."""
        self.impossible |= impossible
        self._pending = tuple(pod for pod in self._pending if pod.key not in self.impossible)
        self._lacking = self._sum_up()
        self._known.clear()
        self._fitting = None

    @property
    def pending(self) -> tuple[Pod, ...]:
        """The pods that are asked for."""
        return self._pending

    @property
    def lower_bound(self) -> int:
        """No fewer nodes can do, of whichever template."""
        return bounds.fewest(self._lacking, self._largest()) or 0

    def bound_of(self, place: int) -> int:
        """The same for one template alone."""
        return bounds.fewest(self._lacking, self._largest([place])) or 0

    def lacking(self, counts: Counts) -> int:
        """About how many more nodes it takes; 0 if everything fits with so many of each."""
        if counts not in self._known:
            self._known[counts] = self._short(counts) or self._try(counts)
        return self._known[counts]

    def fewest(self, counts: Callable[[int], Counts], low: int, high: int) -> Counts | None:
        """The smallest number from low to high with whose counts everything fits, as counts."""
        found = search.smallest(lambda number: self.lacking(counts(number)), low, high)
        return None if found is None else counts(found)

    def pack(self, counts: Counts) -> Packing:
        """The cluster with so many nodes of each template, packed."""
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
        return max(1, bounds.fewest(bounds.asked_for(left), self._largest()) or 1) if left else 0

    def _packing(self, counts: Counts) -> Packing:
        situation = self._situation
        new: list[KubeObject] = []
        for template, count in zip(self.templates, counts, strict=True):
            new += template.objects(count)
        objects = (*situation.others, *situation.nodes, *new, *situation.running, *self._pending)
        return Packing(objects, self._config, seed=self._seed, registry=self._registry)

    def _sum_up(self) -> dict[str, int]:
        """What is asked for beyond what is free."""
        situation = self._situation
        wanted = bounds.asked_for(self._pending)
        room = bounds.free(situation.nodes, situation.running)
        return {name: amount - room[name] for name, amount in wanted.items()}

    def _short(self, counts: Counts) -> int:
        """How many more nodes plain arithmetic asks for."""
        both = list(zip(self.templates, counts, strict=True))
        still = {
            name: amount - sum(template.room[name] * count for template, count in both)
            for name, amount in self._lacking.items()
        }
        return bounds.fewest(still, self._largest()) or 0

    def _largest(self, which: Sequence[int] | None = None) -> dict[str, int]:
        """The most of each resource that a node has, of some templates or of all."""
        largest: dict[str, int] = {}
        for place in range(len(self.templates)) if which is None else which:
            for name, amount in self.templates[place].room.items():
                largest[name] = max(largest.get(name, 0), amount)
        return largest
