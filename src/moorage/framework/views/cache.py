"""ViewCache: the views of a profile, per template, and how long they are kept.

A template that has several pods, or comes again, gets views of its own; those used last are kept.
A template that is seen for the first time is evaluated on views that it shares with others, so that
many pods with little in common do not evict views that are of use. Views of single plugins live for
as long as a template uses them.
"""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from moorage.errors import PluginError
from moorage.framework import invoke
from moorage.framework.points import BY_PODS, Depends
from moorage.framework.views.filters import FilterView
from moorage.framework.views.plugin_views import PluginViews
from moorage.framework.views.scores import ScoreView
from moorage.framework.views.shared_totals import SharedTotals
from moorage.framework.views.template import MeasuredViews, TemplateViews
from moorage.nodes.template import PodTemplate

if TYPE_CHECKING:
    from moorage.framework.profile import Profile

# Arrays may take about so much memory per profile. More would hardly help: a template that comes
# once in hundreds finds most rows changed. With templates that come by turns, one too many for the
# limit evicts each before it comes again.
MOST_BYTES = 64 << 20
# Measured: 20 without affinity, 35 with a spread, 98 with anti-affinity by host.
BYTES_PER_ROW = 72
FEWEST_TEMPLATES = 32
MOST_SEEN_ONCE = 32
MOST_KNOWN_READS = 1 << 14


class ViewCache:
    """See the module."""

    def __init__(self, profile: "Profile") -> None:
        self._profile = profile
        self._kind = TemplateViews if profile.meter is None else MeasuredViews
        # By the template's serial number, the one used last at the end.
        self._templates: OrderedDict[int, TemplateViews] = OrderedDict()
        self._latest: TemplateViews | None = None
        # For templates that are seen once, by what plugins that read node objects read of them, and
        # the hashes of all that these have read.
        self._seen_once: OrderedDict[Hashable, TemplateViews] = OrderedDict()
        self._known_reads: set[int] = set()
        # One object for all that are equal.
        self._equal_reads: dict[tuple[Hashable, ...], tuple[Hashable, ...]] = {}
        # What was read of the last of these templates, the version of nodes, and the views.
        self._latest_once: tuple[tuple[Hashable, ...], int, TemplateViews] | None = None
        # By plugin, and by what it reads of a pod.
        self._plugin_views: dict[str, WeakValueDictionary[Hashable, PluginViews]] = {
            plugin.name: WeakValueDictionary() for plugin in profile.cached
        }
        # For decisions by groups of rows, by the views of filters and scores.
        self._totals: WeakValueDictionary[Hashable, SharedTotals] = WeakValueDictionary()
        self._by_node = [p for p in profile.cached if p.depends not in BY_PODS]
        self._by_all_nodes = [p for p in self._by_node if p.depends is Depends.NODES]
        self._by_usage = [p for p in profile.cached if p.depends in BY_PODS]
        # Where a template keeps what plugins that read node objects read of it.
        self._slot = f"reads of {profile.name}"

    def of(self, template: PodTemplate) -> TemplateViews:
        """The views that a pod of a template is evaluated on."""
        serial = template.serial
        views = self._templates.get(serial)
        if views is not None:
            if views is not self._latest:
                self._templates.move_to_end(serial)
                self._latest = views
            return views
        if template.seen < 2:
            template.seen = 2
            return self._for_once(template)
        most = MOST_BYTES // (BYTES_PER_ROW * self._profile.cluster.table.capacity)
        while len(self._templates) >= max(most, FEWEST_TEMPLATES):
            self._templates.popitem(last=False)
        own = self._find(self._by_usage, self._reads(self._by_usage, template), template)
        views = self._kind(self._profile, template, self.by_node(template), own)
        self._templates[serial] = self._latest = views
        return views

    def _for_once(self, template: PodTemplate) -> TemplateViews:
        reads = template.compiled.get(self._slot) or self._node_reads(template)
        position, latest = self._profile.cluster.table.node_changes.position, self._latest_once
        # To compare objects is quicker than to hash all that plugins read.
        if latest is not None and latest[0] is reads and latest[1] == position:
            return latest[2]
        nodes = tuple([self._nodes_key(plugin, template) for plugin in self._by_all_nodes])
        key: tuple[Hashable, ...] = (nodes, reads)
        try:
            views = self._seen_once.get(key)
        except Exception:  # Unhashable: `_read_before` names the plugin.
            views = None
        if views is not None:
            self._latest_once = reads, position, views
        else:
            plugins, known = self._read_before(reads)
            if len(plugins) < len(self._by_node):
                key = (nodes, known, *[plugin.name for plugin in plugins])
                views = self._seen_once.get(key)
        if views is None:
            by_node = self._find(plugins, known, template)
            views = self._kind(self._profile, template, by_node, None)
            while len(self._seen_once) >= MOST_SEEN_ONCE:
                self._seen_once.popitem(last=False)
            self._seen_once[key] = views
        else:
            self._seen_once.move_to_end(key)
        return views

    def _read_before(
        self, all_reads: tuple[Hashable, ...]
    ) -> tuple[list[Any], tuple[Hashable, ...]]:
        """The plugins that read of a template what they have read of others, and what.

        A pod of a DaemonSet names its node. Views for what is never read again are not worth it.
        """
        known = self._known_reads
        plugins: list[Any] = []
        reads: list[Hashable] = []
        if len(known) > MOST_KNOWN_READS:
            known.clear()
        for plugin, read in zip(self._by_node, all_reads, strict=True):
            try:
                mark = hash((plugin.name, read))
            except Exception as unhashable:
                raise self._unhashable(plugin, read) from unhashable
            if mark in known:
                plugins.append(plugin)
                reads.append(read)
            else:
                known.add(mark)
        return plugins, tuple(reads)

    def by_node(self, template: PodTemplate) -> dict[str, PluginViews]:
        """The views of plugins that read node objects only."""
        return self._find(self._by_node, self._node_reads(template), template)

    def shared_totals(
        self,
        filters: Sequence[tuple[int, FilterView]],
        scores: Sequence[tuple[int, ScoreView]],
    ) -> SharedTotals:
        """The totals of some views; the same for all templates that have these views."""
        key = (*filters, *scores)
        found = self._totals.get(key)
        if found is None:
            found = self._totals[key] = SharedTotals(self._profile, filters, scores)
        return found

    def prepare(self, template: PodTemplate) -> None:
        """Compute what plugins read of a template, before its first cycle."""
        # Raised again in the cycle of the pod; what a plugin returned may have no hash.
        with suppress(Exception):
            reads = template.compiled[self._slot] = self._reads(self._by_node, template)
            if len(self._equal_reads) >= MOST_KNOWN_READS:
                self._equal_reads.clear()
            template.compiled[self._slot] = self._equal_reads.setdefault(reads, reads)

    def _nodes_key(self, plugin: Any, template: PodTemplate) -> Hashable:
        """How long a plugin's results hold that are computed over all nodes together."""
        profile, table = self._profile, self._profile.cluster.table
        method = profile.method(plugin, "nodes_key")
        if method is None:
            return table.node_changes.position
        return invoke.hashable(method, method.call(template.exemplar, table))

    def _unhashable(self, plugin: Any, read: Any) -> PluginError:
        """The error for what a plugin reads of a template."""
        return self._profile.require(plugin, "reads").returned(read, "hashable")

    def _node_reads(self, template: PodTemplate) -> tuple[Hashable, ...]:
        reads: tuple[Hashable, ...] | None = template.compiled.get(self._slot)
        return self._reads(self._by_node, template) if reads is None else reads

    def _reads(self, plugins: Sequence[Any], template: PodTemplate) -> tuple[Hashable, ...]:
        """What plugins read of a template; without `reads`, all of it."""
        methods = [self._profile.method(plugin, "reads") for plugin in plugins]
        return tuple([template.serial if m is None else m.call(template.exemplar) for m in methods])

    def _find(
        self, plugins: Sequence[Any], reads: Sequence[Hashable], template: PodTemplate
    ) -> dict[str, PluginViews]:
        """The views of plugins, by name; new ones where none is known for what they read."""
        found = {}
        for plugin, read in zip(plugins, reads, strict=True):
            known = self._plugin_views[plugin.name]
            key = read
            if plugin.depends is Depends.NODES:
                key = (read, self._nodes_key(plugin, template))
            try:
                views = known.get(key)
            except Exception as unhashable:
                raise self._unhashable(plugin, read) from unhashable
            if views is None:
                views = known[key] = PluginViews(self._profile, plugin, template)
            found[plugin.name] = views
        return found
