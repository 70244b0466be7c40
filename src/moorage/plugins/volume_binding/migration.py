"""Which nodes reach a volume that a claim has, in-tree disks included.

A node that serves such a disk through its CSI driver knows the disk's zone by the driver's own
label; the CSINode object of the node says whether it does.
"""

import numpy as np

from moorage import plugin as mp
from moorage.plugins.volume_binding import reach
from moorage.plugins.volume_binding.reach import Reach


class Migrated:
    """The rows of the nodes that serve an in-tree plugin's volumes through CSI."""

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


def reach_from(cluster: mp.Cluster, volume: mp.PersistentVolume, node: str) -> Reach:
    """The reach of a volume as a node sees it."""
    plugin = mp.csi_migration.plugin_of(volume.spec)
    if plugin in mp.csi_migration.DRIVERS:
        csi_node = cluster.get(mp.CSINode, node)
        if plugin in mp.csi_migration.migrated_plugins(csi_node):
            return reach.of_affinity(mp.csi_migration.affinity_of(volume))
    return reach.of_affinity(volume.spec.node_affinity)


def reached_rows(cluster: mp.Cluster, volume: mp.PersistentVolume) -> mp.Mask:
    """Which rows reach a volume; not to be written to."""
    masks = reach.masks(cluster)
    plain = masks.of(reach.of_affinity(volume.spec.node_affinity))
    plugin = mp.csi_migration.plugin_of(volume.spec)
    if plugin is None or plugin not in mp.csi_migration.DRIVERS:
        return plain
    migrated = cluster.derived(Migrated).rows(plugin)
    if not migrated.any():
        return plain
    translated = masks.of(reach.of_affinity(mp.csi_migration.affinity_of(volume)))
    return np.where(migrated, translated, plain)
