"""PlacementSearch: in which placements a group fits, with as few trials as possible.

If it is known how many members fit in each placement, placements with equal numbers need one trial,
and one with more members than another is at least as good. Each trial has random numbers of its
own, so that the nodes of a placement do not depend on which others were tried.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from random import Random

from moorage.api.pod import Pod
from moorage.core.cycle import Choices, SchedulingCycle
from moorage.core.group_results import Trial
from moorage.core.placement_counts import PlacementCounts
from moorage.nodes.pod_groups import GroupPlacement


class PlacementSearch:
    """See the module; `counts` is None if all placements have to be tried."""

    def __init__(
        self,
        placements: Sequence[GroupPlacement],
        try_in: Callable[[GroupPlacement], Trial],
        cycle: SchedulingCycle,
    ) -> None:
        self.counts: PlacementCounts | None = None
        self._placements = placements
        self._try_in = try_in
        self._cycle = cycle
        self._seed = cycle.random.getrandbits(32)
        self._start = cycle.choices.start
        self._trials: dict[int, Trial] = {}
        self._starts: dict[int, int] = {}

    def trial(self, index: int) -> Trial:
        """What is found in a placement."""
        found = self._trials.get(index)
        if found is None:
            self._cycle.choices = Choices(Random(self._seed + index), self._start)
            found = self._trials[index] = self._try_in(self._placements[index])
            self._starts[index] = self._cycle.choices.start
        return found

    def choices_after(self, index: int, before: Choices) -> Choices:
        """The choices after the trial of a placement that is chosen."""
        return Choices(before.random, self._starts[index])

    def good(self) -> list[int]:
        """The placements in which the group has room."""
        if self.counts is not None:
            found = self._good_by_count(self.counts.fits)
            if found is not None:
                return found
            self.counts = None
        indexes = range(len(self._placements))
        return [index for index in indexes if self.trial(index).result.goes_on]

    def _good_by_count(self, fits: list[int]) -> list[int] | None:
        """The same by the number of members that fit; None if a trial finds another number."""
        example = {fits[index]: index for index in reversed(range(len(fits)))}
        for index in {0, example[max(fits)]}:
            if not self._is_as_counted(index, fits):
                return None
        values = sorted(example)
        low = bisect_left(values, 1, key=lambda n: int(self.trial(example[n]).result.goes_on))
        if not all(self._is_as_counted(index, fits) for index in self._trials):
            return None
        least = values[low] if low < len(values) else max(fits) + 1
        return [index for index, count in enumerate(fits) if count >= least]

    def _is_as_counted(self, index: int, fits: list[int]) -> bool:
        return sum(bool(member.node) for member in self.trial(index).members) == fits[index]

    def proposed(self, index: int, pods: Sequence[Pod]) -> Sequence[Pod]:
        """The members that fit in a placement: of equal ones, the first."""
        if self.counts is not None and index not in self._trials:
            return pods[: self.counts.fits[index]]
        return [member.entry.pod for member in self.trial(index).members if member.node]

    def rejectors(self) -> set[str]:
        """The plugins that reject members in any placement."""
        found = set[str]()
        for index in range(len(self._placements)):
            if self.counts is not None and index not in self._trials:
                found |= self.counts.rejectors[index]
            else:
                found.update(*(member.rejectors for member in self.trial(index).members))
        return found
