"""Sheets: what a profile keeps, per template, and how long.

A template that has several pods, or comes up again, gets a sheet, which is kept among the latest
used. A single pod is looked at on the sheet of its family first, so that a crowd of pods that have
little in common neither drives out what is of use nor walks through ever colder memory.

What plugins make of the parts of a pod that they read is shared by all sheets, and there for as
long as one of them stands on it.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from moorage.api.pod import Pod
from moorage.errors import PluginError
from moorage.framework.family import Family
from moorage.framework.newcomers import Newcomers
from moorage.framework.points import Depends
from moorage.framework.reading import Reading
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
MOST_FAMILIES = 32


# A plugin, what it reads of a pod (if it says so), and whether it looks at all nodes together.
Reader = tuple[Any, Callable[[Pod], Hashable] | None, bool]


class Sheets:
    """See the module."""

    def __init__(self, profile: "Profile") -> None:
        self._profile = profile
        self._kept: OrderedDict[int, Sheet] = OrderedDict()
        # By family, the latest last.
        self._newcomers: OrderedDict[Family, Newcomers] = OrderedDict()
        # Used last, and so at the end of those kept.
        self._latest: Sheet | None = None
        # For each kept plugin, by what it reads of a template.
        self._readings: dict[str, dict[Hashable, Reading]] = {p.name: {} for p in profile.kept}
        # By what all plugins read that look at node objects only.
        self._families: dict[tuple[int, tuple[Hashable, ...]], Family] = {}
        usage = Depends.USAGE
        self._by_nodes = [_reader(profile, p) for p in profile.kept if p.depends is not usage]
        self._by_usage = [_reader(profile, p) for p in profile.kept if p.depends is usage]
        self._looks_around = profile.looks_at_nodes
        self._node_changes = profile.cluster.table.node_changes
        # Under which a template keeps what is read of it.
        self._slot = f"reads of {profile.name}"

    def of(self, template: PodTemplate) -> Sheet:
        """What is kept about a template."""
        serial = template.serial
        sheet = self._kept.get(serial)
        if sheet is not None:
            if sheet is not self._latest:
                self._kept.move_to_end(serial)
                self._latest = sheet
            return sheet
        if template.seen < 2:
            template.seen = 2
            return self._newcomers_like(template)
        most = KEPT_BYTES // (BYTES_PER_ROW * self._profile.cluster.table.capacity)
        while len(self._kept) >= max(most, FEWEST_KEPT):
            self._drop(self._kept.popitem(last=False)[1])
        sheet = self._kept[serial] = self._latest = self._new(template)
        return sheet

    def _newcomers_like(self, template: PodTemplate) -> Newcomers:
        """The sheet of a template's family."""
        family = self.family(template)
        newcomers = self._newcomers.get(family)
        if newcomers is None:
            while len(self._newcomers) >= MOST_FAMILIES:
                self.leave(self._newcomers.popitem(last=False)[0])
            newcomers = Newcomers(self._profile, template, family)
            self._newcomers[family] = newcomers
        else:
            self._newcomers.move_to_end(family)
            family.holders -= 1
        return newcomers

    def _new(self, template: PodTemplate) -> Sheet:
        reads = self._reads(self._by_usage, template)
        own = self._found(self._by_usage, reads, template)
        family = self.family(template)
        self._hold(own)
        return Sheet(self._profile, self._profile.by_template, template, family, own)

    def _drop(self, sheet: Sheet) -> None:
        self._release(sheet.own)
        self.leave(sheet.family)

    # Shared by sheets

    def family(self, template: PodTemplate) -> Family:
        """The family of a template, with one more sheet that stands on it."""
        reads = template.compiled.get(self._slot)
        if reads is None:
            reads = self._reads(self._by_nodes, template)
        # What is worked out about all nodes together holds until one of them changes.
        position = self._node_changes.position if self._looks_around else 0
        key = (position, reads)
        try:
            family = self._families.get(key)
        except TypeError:  # What cannot be hashed cannot be kept.
            family = None
        if family is None:
            found = self._found(self._by_nodes, reads, template, position)
            state = CycleState(self._profile.cluster, template, 0.0)
            family = self._families[key] = Family(self._profile, found, key, state)
            self._hold(found)
        family.holders += 1
        return family

    def leave(self, family: Family) -> None:
        """A sheet does not stand on a family any more."""
        family.holders -= 1
        if not family.holders:
            del self._families[family.key]
            self._release(family.readings)

    def prepare(self, template: PodTemplate) -> None:
        """Find out what plugins read of a template, before it is asked about."""
        try:
            template.compiled[self._slot] = self._reads(self._by_nodes, template)
        except PluginError:
            return  # It is told when the pod is asked about.

    def _reads(self, plugins: Sequence[Reader], template: PodTemplate) -> tuple[Hashable, ...]:
        """What plugins read of a template."""
        found, pod = [], template.exemplar
        for _, reads, _ in plugins:
            found.append(template.serial if reads is None else reads(pod))
        return tuple(found)

    def _found(
        self,
        plugins: Sequence[Reader],
        reads: Sequence[Hashable],
        template: PodTemplate,
        position: int = 0,
    ) -> dict[str, Reading]:
        """What plugins make of what they read, by their names."""
        found = {}
        for (plugin, _, looks_around), read in zip(plugins, reads, strict=True):
            key = (read, position) if looks_around else read
            try:
                known = self._readings[plugin.name].get(key)
            except TypeError as trouble:
                method = self._profile.require(plugin, "reads")
                raise method.failed(str(trouble)) from trouble
            found[plugin.name] = known or self._make(plugin, template, key)
        return found

    def _make(self, plugin: Any, template: PodTemplate, read: Hashable) -> Reading:
        state = CycleState(self._profile.cluster, template, 0.0)
        return Reading(self._profile, plugin, state, read)

    def _hold(self, readings: Mapping[str, Reading]) -> None:
        for name, reading in readings.items():
            if not reading.holders:
                self._readings[name][reading.read] = reading
            reading.holders += 1

    def _release(self, readings: Mapping[str, Reading]) -> None:
        for name, reading in readings.items():
            reading.holders -= 1
            if not reading.holders:
                del self._readings[name][reading.read]


def _reader(profile: "Profile", plugin: Any) -> Reader:
    return plugin, profile.method(plugin, "reads"), plugin.depends is Depends.NODES
