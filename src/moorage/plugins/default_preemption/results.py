"""Results of dry runs, per row, cached per template until the row changes.

Candidates are compared by their rank among the distinct figures that were found, so that the best
of thousands takes one array operation. The victims themselves are looked up for the chosen node
only.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.default_preemption import sorted_pods, victims
from moorage.plugins.default_preemption.sorted_pods import Ints, SortedPods
from moorage.plugins.disruption_budgets import Budgets, Violated

# Instead of a rank: of rows without a result, and the smallest of those where preemption
# does not help.
UNTRIED, REJECTED = -1, 1 << 32
# Instead of a block's index, for a row that was tried by itself.
NO_BLOCK = -1
MOST_BLOCKS = 64
# Added to every priority, as in Kubernetes: fewer victims of negative priority are better.
OFFSET = 1 << 31
# The bytes that cached arrays may take, at about 60 per row and template.
CACHE_BYTES = 16 << 20
BYTES_PER_ROW = 60
FEWEST_CACHED = 16

# What candidates are compared by, less being better: violations, top priority, sum of priorities,
# number of victims, and the earliest start of those with the top priority, negated.
Figures = tuple[float, float, float, float, float]
HARMFUL = (1.0,)
# Up to so many new ones are inserted one by one.
FEW_FIGURES = 4


class BlockVictims(NamedTuple):
    """The victims on rows that were tried together."""

    table: mp.NodeTable
    pods: SortedPods
    # For each of these rows, which of its pods are victims, and its index in the lists below.
    chosen: NDArray[np.bool_]
    places: mp.RowArray
    violated: list[Violated]
    lowers: list[int]

    def candidate(self, row: int, i: int) -> mp.Candidate:
        """The candidate of a row, which is the i-th of these."""
        place = self.places.item(i)
        leaving: Iterable[mp.Placed] = compress(self.pods.placed[row], self.chosen[i].tolist())
        if violated := self.violated[place]:
            leaving = victims.sorted_again(leaving, violated, self.lowers[place])
        return victims.candidate(self.table.names[row], [each.pod for each in leaving], violated)


class DryRunResults:
    """See the module."""

    def __init__(self, capacity: int) -> None:
        # The rank of a candidate, UNTRIED, or REJECTED and an index into the statuses.
        self.ranks: Ints = np.full(capacity, UNTRIED, dtype=np.int64)
        # The figures of every rank, the best first. Rows that had some may have changed since.
        self.figures: list[Figures] = []
        # The victims: of a row that was tried by itself, or of a block of rows.
        self._candidates: dict[int, mp.Candidate] = {}
        self.blocks: list[BlockVictims] = []
        self._block_of: Ints = np.full(capacity, NO_BLOCK)
        self._index_in_block: Ints = np.zeros(capacity, dtype=np.int64)
        self._statuses: list[mp.Status] = []
        self._code_of: dict[mp.Status, int] = {}

    def forget(self, rows: set[int]) -> None:
        """Drop the results of these rows."""
        if len(rows) <= mp.FEW_ROWS:
            for row in rows:
                self.ranks[row] = UNTRIED
        else:
            self.ranks[list(rows)] = UNTRIED

    def candidate(self, row: int) -> mp.Candidate:
        """The victims on a row where preemption helps."""
        block = self._block_of.item(row)
        if block == NO_BLOCK:
            return self._candidates[row]
        return self.blocks[block].candidate(row, self._index_in_block.item(row))

    @property
    def has_harmful(self) -> bool:
        """Whether some candidates violate disruption budgets."""
        return bool(self.figures) and self.figures[-1] >= HARMFUL

    @property
    def harmful(self) -> int:
        """From which rank on candidates violate disruption budgets."""
        return bisect_left(self.figures, HARMFUL)

    def record(self, row: int, outcome: mp.Candidate | mp.Status) -> None:
        """Store the result of one row."""
        if isinstance(outcome, mp.Status):
            self.ranks[row] = self._code(outcome)
            return
        found = figures(outcome)
        self.ranks[row] = self._rank((found,))[found]
        self._candidates[row] = outcome
        self._block_of[row] = NO_BLOCK

    def record_rejected(self, rows: mp.RowArray, status: mp.Status) -> None:
        """Store the result of rows where preemption does not help."""
        self.ranks[rows] = self._code(status)

    def record_block(
        self, rows: mp.RowArray, found: Sequence[Figures], leaving: BlockVictims
    ) -> None:
        """Store the figures and the victims of rows where preemption helps."""
        rank_of = self._rank(dict.fromkeys(found))
        self.ranks[rows] = [*map(rank_of.__getitem__, found)]
        self._block_of[rows] = len(self.blocks)
        self._index_in_block[rows] = np.arange(len(rows))
        self.blocks.append(leaving)

    def rejections(self, rows: mp.RowArray) -> Counter[mp.Status]:
        """Why preemption does not help on these rows, with the number of rows."""
        ranks = self.ranks[rows]
        codes, counts = np.unique(ranks[ranks >= REJECTED] - REJECTED, return_counts=True)
        found = zip(codes.tolist(), counts.tolist(), strict=True)
        return Counter({self._statuses[code]: n for code, n in found})

    def _rank(self, found: Iterable[Figures]) -> dict[Figures, int]:
        """The ranks of distinct figures; those behind new ones get a higher one."""
        known, rank_of = self.figures, dict[Figures, int]()
        new: list[Figures] = []
        places: list[int] = []
        for each in sorted(found):
            place = bisect_left(known, each)
            rank_of[each] = place + len(new)
            if place == len(known) or known[place] != each:
                new.append(each)
                places.append(place)
        if not new:
            return rank_of
        ranks = self.ranks
        if len(new) > FEW_FIGURES:
            helps = (ranks > UNTRIED) & (ranks < REJECTED)
            ranks[helps] += np.searchsorted(places, ranks[helps], side="right")
            self.figures = sorted(known + new)
            return rank_of
        # Most often one row is tried again. To sort all figures would take longer than the search
        # where no two victims started at the same time.
        for place, each in zip(reversed(places), reversed(new), strict=True):
            ranks += (ranks >= place) & (ranks < REJECTED)
            known.insert(place, each)
        return rank_of

    def _code(self, status: mp.Status) -> int:
        code = self._code_of.get(status)
        if code is None:
            code = self._code_of[status] = REJECTED + len(self._statuses)
            self._statuses.append(status)
        return code


def figures(candidate: mp.Candidate) -> Figures:
    """What a candidate is compared by."""
    leaving = candidate.victims
    total = sum(victim.priority + OFFSET for victim in leaving)
    highest = max(victim.priority for victim in leaving)
    started = min(sorted_pods.started_at(v) for v in leaving if v.priority == highest)
    return candidate.violations, leaving[0].priority, total, len(leaving), -started


class TemplateResults:
    """The cached results of one template.

    Where all filters depend on a node and its pods only, a row is tried again when its pods or its
    nominated pods change, or a disruption budget of its pods. Otherwise any change drops all
    results; the stamp of the rejection tells.
    """

    def __init__(self, cluster: mp.Cluster) -> None:
        self.cluster = cluster
        self.results = DryRunResults(0)  # Until a row is tried.
        self._pods = mp.Cursor(cluster.table.changes)
        self._nominations = mp.Cursor(cluster.nomination_changes)
        self._stamp: Hashable = None
        self._budgets: Budgets | None = None
        self._reasons: mp.RejectionCounts | None = None
        self._version = (0, 0)
        # The rows where preemption may help, and the same twice in a row.
        self._rows: mp.RowArray = np.zeros(0, dtype=np.intp)
        self._twice = self._rows
        # A row whose result holds for one pod only: it is that pod's nominated node.
        self._own: int | None = None

    def refresh(self, stamp: Hashable, budgets: Budgets, own: int | None) -> DryRunResults:
        """Drop what may have changed: everything if the stamp differs or is None."""
        pods, nominations = self._pods.take(), self._nominations.take()
        capacity = self.cluster.table.capacity
        is_known = stamp is not None and stamp == self._stamp
        results = self.results
        # With too many of either, most of what is kept belongs to rows that have changed since.
        is_outgrown = len(results.blocks) > MOST_BLOCKS or len(results.figures) > 2 * capacity
        is_outgrown = is_outgrown or len(results.ranks) != capacity
        if not is_known or pods is None or nominations is None or (pods and is_outgrown):
            self.results = DryRunResults(capacity)
        else:
            changed = {*pods, *nominations}
            if self._own is not None:
                changed.add(self._own)
            if own is not None:
                changed.add(own)
            if budgets is not self._budgets and self._budgets is not None:
                for budget in budgets.changed_since(self._budgets):
                    changed |= budget.rows(self.cluster.table)
            self.results.forget(changed)
        self._stamp, self._budgets, self._own = stamp, budgets, own
        return self.results

    def potential_rows(self, failure: mp.NoFeasibleNode) -> mp.RowArray:
        """The rows where preemption may help: rejected, and not as unresolvable."""
        table, reasons = self.cluster.table, failure.counts
        version = (0 if reasons is None else reasons.version, table.node_changes.position)
        if reasons is None or reasons is not self._reasons or version != self._version:
            rows = table.zone_order.rows()
            self._rows = rows[failure.having(mp.Code.UNSCHEDULABLE, rows)]
            self._twice = np.concatenate((self._rows, self._rows))
            self._reasons, self._version = reasons, version
        return self._rows

    def visited_from(self, start: int) -> mp.RowArray:
        """The rows where preemption may help, from one of them on and around to it."""
        return self._twice[start : start + len(self._rows)]


class PreemptionCache:
    """Results by template, the cluster's budgets, and its pods in order of importance."""

    def __init__(self) -> None:
        self._sorted_pods: SortedPods | None = None
        self._by_template: dict[int, TemplateResults] = {}
        self._budgets: tuple[mp.Cluster, int, Budgets] | None = None

    def results(self, state: mp.CycleState) -> TemplateResults:
        """The results of the pod's template."""
        serial = state.template.serial
        cached = self._by_template.pop(serial, None)
        if cached is None or cached.cluster is not state.cluster:
            cached = TemplateResults(state.cluster)
            most = max(CACHE_BYTES // (BYTES_PER_ROW * state.table.capacity), FEWEST_CACHED)
            while len(self._by_template) >= most:
                del self._by_template[next(iter(self._by_template))]
        self._by_template[serial] = cached  # The least recently used is evicted first.
        return cached

    def budgets(self, cluster: mp.Cluster) -> Budgets:
        """The disruption budgets as they are now."""
        version = cluster.version_of(mp.PodDisruptionBudget)
        known = self._budgets
        if known is None or known[0] is not cluster:
            known = self._budgets = (cluster, version, Budgets(cluster))
        elif known[1] != version:
            known = self._budgets = (cluster, version, Budgets(cluster, known[2]))
        return known[2]

    def sorted_pods(self, table: mp.NodeTable) -> SortedPods:
        """The pods of all nodes, ordered by importance."""
        if self._sorted_pods is None or not self._sorted_pods.is_of(table):
            self._sorted_pods = SortedPods(table)
        return self._sorted_pods
