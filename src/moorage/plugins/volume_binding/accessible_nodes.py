"""AccessibleNodes: the nodes on which a volume can be used, by their labels.

The node affinity of a volume, the allowed topologies of a class and the topology of a storage
capacity all select nodes by labels. Each is compiled once per distinct content; the mask of all
nodes is cached until a node changes.

A migrated in-tree disk has the zone labels of its CSI driver. Whether a node accesses such a disk
through the driver is in the node's CSINode object.
"""

from collections.abc import Mapping
from functools import lru_cache, reduce
from operator import and_, or_
from typing import NamedTuple

import numpy as np

from moorage import plugin as mp

Requirement = mp.selectors.Requirement
Term = tuple[Requirement, ...]
Label = tuple[str, str]

MOST_MASKS = 512


class AccessibleNodes(NamedTuple):
    """Terms of which one has to match, each with requirements that all have to; None: all nodes."""

    terms: tuple[Term, ...] | None = None

    def includes(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels is one of them."""
        if self.terms is None:
            return True
        return any(all(r.matches(labels) for r in term) for term in self.terms)

    @property
    def labels(self) -> tuple[Label, ...] | None:
        """Labels of which every node has at least one; None if there are no such labels."""
        found: dict[Label, None] = {}
        for term in self.terms or ((),):
            requirement = next((r for r in term if r.operator == mp.selectors.IN), None)
            if requirement is None:
                return None
            found.update(dict.fromkeys((requirement.key, value) for value in requirement.values))
        return tuple(found)

    @property
    def only_key(self) -> str | None:
        """The label key whose value alone decides, if there is one."""
        terms = self.terms or ()
        plain = len(terms) == 1 and len(terms[0]) == 1 and terms[0][0].operator == mp.selectors.IN
        return terms[0][0].key if plain else None


class TranslationError(mp.PluginFailure):
    """An in-tree volume that a node's CSI driver cannot take over."""


class RowsOfVolume(NamedTuple):
    """The rows that access a volume; and those for which it is an error, with its text."""

    reached: mp.Mask
    failed: mp.Mask | None = None
    error: str = ""


ALL_NODES = AccessibleNodes()
NO_NODE = AccessibleNodes(())


@lru_cache(maxsize=16384)
def of_affinity(affinity: mp.VolumeNodeAffinity | None) -> AccessibleNodes:
    """The nodes of a volume's affinity: labels count, fields do not, as in Kubernetes.

    A term that does not parse matches no node, and the other terms still count.
    """
    if affinity is None or affinity.required is None:
        return ALL_NODES
    compiled = mp.selectors.compile_node_selector(affinity.required)
    return AccessibleNodes(
        tuple(term.label_requirements for term in compiled.terms if not term.problems)
    )


def of_topologies(storage_class: mp.StorageClass) -> AccessibleNodes:
    """The nodes for which a class may make volumes; empty terms match none."""
    if not storage_class.allowed_topologies:
        return ALL_NODES
    return AccessibleNodes(
        tuple(
            tuple(Requirement(e.key, mp.selectors.IN, e.values) for e in t.match_label_expressions)
            for t in storage_class.allowed_topologies
            if t.match_label_expressions
        )
    )


def of_selector(selector: mp.LabelSelector | None) -> AccessibleNodes:
    """The nodes of a label selector; none, or one that does not parse, matches no node."""
    try:
        compiled = mp.selectors.compile_label_selector(selector)
    except mp.selectors.SelectorError:
        return NO_NODE
    return NO_NODE if compiled.matches_nothing else AccessibleNodes((compiled.requirements,))


class AccessibleMasks:
    """The rows of accessible nodes, cached until a node changes."""

    def __init__(self, cluster: mp.Cluster) -> None:
        self._table = cluster.table
        self._stamp = (-1, -1)
        self._masks: dict[AccessibleNodes, mp.Mask] = {}

    def of(self, nodes: AccessibleNodes) -> mp.Mask:
        """A mask over the whole table; not to be written to."""
        stamp = (self._table.node_changes.position, self._table.capacity)
        if stamp != self._stamp or len(self._masks) >= MOST_MASKS:
            self._stamp, self._masks = stamp, {}
        mask = self._masks.get(nodes)
        if mask is None:
            mask = self._masks[nodes] = _mask(nodes, self._table)
        return mask


def masks(cluster: mp.Cluster) -> AccessibleMasks:
    """The masks of a cluster."""
    return cluster.derived(AccessibleMasks)


def _mask(nodes: AccessibleNodes, table: mp.NodeTable) -> mp.Mask:
    every = np.ones(table.capacity, dtype=np.bool_)
    if nodes.terms is None:
        return every
    terms = [reduce(and_, map(table.meets, term), every) for term in nodes.terms]
    return reduce(or_, terms, ~every)


class MigratedRows:
    """The rows of nodes that access an in-tree plugin's volumes through CSI."""

    def __init__(self, cluster: mp.Cluster) -> None:
        self._cluster = cluster
        self._stamp = (-1, -1, -1)
        self._rows: dict[str, mp.Mask] = {}

    def rows(self, plugin: str) -> mp.Mask:
        """A mask over the whole table."""
        cluster, table = self._cluster, self._cluster.table
        nodes = cluster.version_of(mp.CSINode)
        stamp = (nodes, table.node_changes.position, table.capacity)
        if stamp != self._stamp:
            self._stamp, self._rows = stamp, {}
        mask = self._rows.get(plugin)
        if mask is None:
            mask = self._rows[plugin] = table.named(
                csi_node.name
                for csi_node in cluster.all(mp.CSINode)
                if plugin in mp.csi_migration.migrated_plugins(csi_node)
            )
        return mask


def of_volume(cluster: mp.Cluster, volume: mp.PersistentVolume, node: str) -> AccessibleNodes:
    """The nodes that access a volume, for a node that may have a CSINode."""
    plugin = mp.csi_migration.plugin_of(volume.spec)
    if plugin in mp.csi_migration.DRIVERS:
        csi_node = cluster.get(mp.CSINode, node)
        if plugin in mp.csi_migration.migrated_plugins(csi_node):
            return _translated(volume)
    return of_affinity(volume.spec.node_affinity)


def _translated(volume: mp.PersistentVolume) -> AccessibleNodes:
    """The nodes that access an in-tree volume through its CSI driver."""
    try:
        return of_affinity(mp.csi_migration.affinity_of(volume))
    except mp.csi_migration.MigrationError as error:
        raise TranslationError(f"could not translate pv: {error}") from error


def are_all(volume: mp.PersistentVolume) -> bool:
    """Whether all nodes access a volume, whatever their labels; False if that takes a look."""
    spec = volume.spec
    return spec.csi is not None and spec.node_affinity is None


def rows_of_volume(cluster: mp.Cluster, volume: mp.PersistentVolume) -> RowsOfVolume:
    """The rows that access a volume; not to be written to."""
    all_masks = masks(cluster)
    plain = all_masks.of(of_affinity(volume.spec.node_affinity))
    plugin = mp.csi_migration.plugin_of(volume.spec)
    if plugin is None or plugin not in mp.csi_migration.DRIVERS:
        return RowsOfVolume(plain)
    migrated = cluster.derived(MigratedRows).rows(plugin)
    if not migrated.any():
        return RowsOfVolume(plain)
    try:
        nodes = _translated(volume)
    except TranslationError as error:
        return RowsOfVolume(plain, migrated, str(error))
    return RowsOfVolume(np.where(migrated, all_masks.of(nodes), plain))
