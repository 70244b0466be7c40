"""Sheets: what a profile keeps, per template, and how long.

A template that comes up again is kept among the latest used. One that is new may never come up
again: its sheet lives only until the next few newcomers, so that a crowd of pods that have nothing
in common neither drives out what is of use nor walks through ever colder memory.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from moorage.framework.memo import FilterMemo, ScoreMemo
from moorage.framework.sheet import Sheet
from moorage.framework.state import CycleState
from moorage.framework.template import PodTemplate

if TYPE_CHECKING:
    from moorage.framework.profile import Profile

# Kept arrays may take about so much memory per profile. More would hardly help: a template that
# comes up once in hundreds finds most rows changed.
KEPT_BYTES = 32 << 20
BYTES_PER_ROW = 72
FEWEST_KEPT = 32
NEWCOMERS = 2

Memo = TypeVar("Memo", FilterMemo, ScoreMemo)


class Sheets:
    """See the module."""

    def __init__(self, profile: "Profile") -> None:
        self._profile = profile
        self._kept: OrderedDict[int, Sheet] = OrderedDict()
        self._newcomers: OrderedDict[int, Sheet] = OrderedDict()
        # One plugin's answers, for all templates that agree in what it reads. They live as long
        # as a sheet that uses them.
        self._filter_memos: WeakValueDictionary[Hashable, FilterMemo] = WeakValueDictionary()
        self._score_memos: WeakValueDictionary[Hashable, ScoreMemo] = WeakValueDictionary()

    def of(self, template: PodTemplate) -> Sheet:
        """What is kept about a template."""
        serial = template.serial
        sheet = self._kept.get(serial)
        if sheet is not None:
            self._kept.move_to_end(serial)
            return sheet
        sheet = self._newcomers.pop(serial, None)
        if sheet is None:
            state = CycleState(self._profile.cluster, template, 0.0)
            sheet = Sheet(self._profile, template, state)
            if not template.came_before:
                template.came_before = True
                while len(self._newcomers) >= NEWCOMERS:
                    self._newcomers.popitem(last=False)
                self._newcomers[serial] = sheet
                return sheet
        most = KEPT_BYTES // (BYTES_PER_ROW * self._profile.cluster.table.capacity)
        while len(self._kept) >= max(most, FEWEST_KEPT):
            self._kept.popitem(last=False)
        self._kept[serial] = sheet
        return sheet

    def filter_memo(self, plugin: Any, sheet: Sheet) -> FilterMemo:
        """A filter's kept verdicts for what it reads of a pod."""
        return self._memo(self._filter_memos, FilterMemo, plugin, sheet)

    def score_memo(self, plugin: Any, sheet: Sheet) -> ScoreMemo:
        """A score's kept points for what it reads of a pod."""
        return self._memo(self._score_memos, ScoreMemo, plugin, sheet)

    def _memo(
        self,
        memos: WeakValueDictionary[Hashable, Memo],
        kind: type[Memo],
        plugin: Any,
        sheet: Sheet,
    ) -> Memo:
        key = (plugin.name, sheet.read_by(plugin))
        memo = memos.get(key)
        if memo is None:
            loops = self._profile.loops
            memo = memos[key] = kind(plugin, sheet.state, sheet.template.exemplar, loops)
        memo.state = sheet.state  # The latest: it knows the nodes as they are now.
        return memo
