"""Sheets: what a profile keeps, per template, and how long.

A template that comes up again is kept among the latest used. One that is new may never come up
again: its sheet lives only until the next few newcomers, so that a crowd of pods that have nothing
in common neither drives out what is of use nor walks through ever colder memory.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from moorage.errors import PluginError
from moorage.framework import calls
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
NEWCOMERS = 2


class Sheets:
    """See the module."""

    def __init__(self, profile: "Profile") -> None:
        self._profile = profile
        self._kept: OrderedDict[int, Sheet] = OrderedDict()
        self._newcomers: OrderedDict[int, Sheet] = OrderedDict()
        # By what plugins read of a template; they live as long as a sheet that uses them.
        self._readings: WeakValueDictionary[Hashable, Reading] = WeakValueDictionary()

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

    def reading(self, plugin: Any, template: PodTemplate) -> Reading:
        """What a plugin makes of a template."""
        key = (plugin.name, self._read(plugin, template))
        reading = self._readings.get(key)
        if reading is None:
            state = CycleState(self._profile.cluster, template, 0.0)
            reading = self._readings[key] = Reading(self._profile, plugin, state)
        return reading

    def _read(self, plugin: Any, template: PodTemplate) -> Hashable:
        """What has to be the same for a plugin to make the same of two templates."""
        read: Hashable = template.serial
        if hasattr(plugin, "reads"):
            try:
                read = plugin.reads(template.exemplar)
                hash(read)
            except Exception as trouble:  # A plugin may raise anything; it costs its own pod only.
                text = f'plugin "{plugin.name}": reads: {calls.describe(trouble)}'
                raise PluginError(plugin.name, text) from trouble
        if plugin.name in self._profile.looking_at_nodes:
            # What it worked out about all nodes together holds until one of them changes.
            return read, self._profile.cluster.table.node_changes.position
        return read
