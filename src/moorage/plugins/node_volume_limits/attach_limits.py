"""AttachLimits: for every row and driver, how many more volumes can be attached.

For the whole-cluster form. It is brought up to date when it is read: rows are recomputed whose
pods, CSINode or VolumeAttachments changed, or whose pods use a claim, volume or class that changed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.node_volume_limits import csi_volumes
from moorage.plugins.node_volume_limits.csi_volumes import AttachmentsByNode, Names, VolumeReader

Ints = NDArray[np.int64]

# More than any driver attaches: drivers that state no limit have none.
UNLIMITED = 1 << 40

KINDS = (
    mp.PersistentVolumeClaim,
    mp.PersistentVolume,
    mp.StorageClass,
    mp.CSINode,
    mp.VolumeAttachment,
)


class FreeAttachments:
    """How many more volumes of one driver each row takes.

    `_least` is a lower bound, so a driver with room everywhere needs no look at any row. It is
    loose after volumes were detached, and computed again when more is wanted than it allows.
    """

    def __init__(self, capacity: int) -> None:
        self.values: Ints = np.full(capacity, UNLIMITED, dtype=np.int64)
        self._least = UNLIMITED

    def set(self, row: int, free: int) -> None:
        """Set the number of one row."""
        self.values[row] = free
        self._least = min(self._least, free)

    def grow(self, more: int) -> None:
        """Add rows without a limit."""
        self.values = np.pad(self.values, (0, more), constant_values=UNLIMITED)

    def all_take(self, count: int) -> bool:
        """Whether every row takes so many more volumes."""
        if count > self._least:
            self._least = int(self.values.min())
        return count <= self._least


class AttachLimits:
    """See the module."""

    def __init__(self, cluster: mp.Cluster) -> None:
        self._cluster = cluster
        self._table = cluster.table
        # While these are the same, only pods may have come or gone.
        self._stamp = (-1, -1, -1)
        self._pods = mp.Cursor(self._table.volumes.changes)
        self._cursors: list[mp.Cursor[Any]] = [
            mp.Cursor(self._table.node_changes),
            *(mp.Cursor(cluster.changes_of(kind)) for kind in KINDS),
        ]
        self._forget()

    def _forget(self) -> None:
        self._capacity = 0
        # By driver: the limits minus the volumes that are attached.
        self._free: dict[str, FreeAttachments] = {}
        # The limits by driver, of the rows that have any.
        self._limits: dict[int, dict[str, int]] = {}
        # Rows that have a CSINode.
        self.has_csi_node: mp.Mask = np.zeros(0, dtype=np.bool_)
        # Rows on which a pod's volumes cannot be counted, and why.
        self.errors: dict[int, str] = {}
        # Rows where pods use a volume, by the volume's name.
        self._rows_of: dict[str, set[int]] = {}
        # The volumes of a row's pods, by the UID of the pod.
        self._names: dict[int, dict[str, Names]] = {}
        # Rows to recompute when one of these changes; may have too many.
        self._rows_by_volume: dict[str, set[int]] = {}
        self._rows_by_class: dict[str, set[int]] = {}
        self._rows_by_attachment: dict[str, set[int]] = {}

    def free(self, driver: str) -> Ints | None:
        """How many more volumes of a driver each row takes; None if no row has a limit."""
        free = self._free.get(driver)
        return None if free is None else free.values

    def all_take(self, names: Names) -> bool:
        """Whether every row takes these volumes, wherever they are attached already."""
        drivers = [*names.values()]
        for driver in set(drivers):
            free = self._free.get(driver)
            if free is not None and not free.all_take(drivers.count(driver)):
                return False
        return True

    def more(self, names: Sequence[str]) -> Ints | int:
        """How many of these volumes are not attached yet, if not the same for all rows.

        A row where all of them are attached takes them whatever its limit is.
        """
        shared = [rows for name in names if (rows := self._rows_of.get(name))]
        if not shared:
            return len(names)
        more = np.full(self._capacity, len(names), dtype=np.int64)
        for rows in shared:
            more[np.fromiter(rows, dtype=np.intp)] -= 1
        more[more == 0] = -UNLIMITED
        return more

    def refresh(self) -> "AttachLimits":
        """Bring the limits up to date."""
        table = self._table
        stamp = (self._cluster.version, table.node_changes.position, table.capacity)
        if stamp == self._stamp and self._pods.is_current:
            return self
        pods = self._pods.changed()
        if stamp == self._stamp and pods is not None:
            for row in dict.fromkeys(pods):
                self._count(row)
        else:
            self._refresh_all(pods)
        self._pods.commit()
        self._stamp = stamp
        return self

    def _refresh_all(self, pods: Sequence[int] | None) -> None:
        """Take in changes of any kind; `pods` are the rows where pods came or went."""
        self._stamp = (-1, -1, -1)
        changed: list[Any] = [cursor.changed() for cursor in self._cursors]
        if not self._capacity or pods is None or any(each is None for each in changed):
            self._recompute()
        else:
            if self._capacity != self._table.capacity:
                self._grow()
            self._update(pods, changed)
        for cursor in self._cursors:
            cursor.commit()

    def _recompute(self) -> None:
        self._forget()
        self._grow()
        for node in self._cluster.all(mp.CSINode):
            row = self._table.row_of.get(node.name)
            if row is not None:
                self._compute(row)

    def _grow(self) -> None:
        more = self._table.capacity - self._capacity
        for free in self._free.values():
            free.grow(more)
        self.has_csi_node = np.pad(self.has_csi_node, (0, more))
        self._capacity = self._table.capacity

    def _update(self, pods: Sequence[int], changed: list[Any]) -> None:
        """Recompute the rows that changes affect; `changed` is in the order of the cursors."""
        nodes, claims, volumes, classes, csi_nodes, attachments = changed
        stale = set(nodes)
        for key in claims:
            for use in ((mp.volumes.CLAIM, key), (mp.volumes.EPHEMERAL, key)):
                stale.update(self._table.volumes.rows(use))
        for name in volumes:
            stale.update(self._rows_by_volume.pop(name, ()))
        for name in classes:
            stale.update(self._rows_by_class.pop(name, ()))
        names = list(csi_nodes)
        for key in attachments:
            stale.update(self._rows_by_attachment.pop(key, ()))
            attachment = self._cluster.get(mp.VolumeAttachment, key)
            names += [] if attachment is None else [attachment.spec.node_name]
        stale.update(self._table.row_of[name] for name in names if name in self._table.row_of)
        for row in stale:
            self._drop(row)
        for row in sorted(stale.union(pods)):
            self._compute(row)

    def _drop(self, row: int) -> None:
        for names in self._names.pop(row, {}).values():
            self._remove_names(row, names)
        self.errors.pop(row, None)

    def _compute(self, row: int) -> None:
        """Read the limits of a row, and count its volumes."""
        name = self._table.name(row)
        csi_node = self._cluster.get(mp.CSINode, name) if name else None
        self.has_csi_node[row] = csi_node is not None
        for driver in self._limits.pop(row, ()):
            self._free[driver].set(row, UNLIMITED)
        limits = csi_volumes.limits_of(csi_node)
        if not limits:
            self._drop(row)
            return
        self._limits[row] = limits
        for driver in limits:
            if driver not in self._free:
                self._free[driver] = FreeAttachments(self._capacity)
        self._count(row)

    def _count(self, row: int) -> None:
        """Count the volumes of a row whose limits are known."""
        limits = self._limits.get(row)
        if limits is None:
            return
        self._read_pods(row)
        attached: Names = {}
        for names in self._names[row].values():
            attached.update(names)
        attached.update(self._without_pod(row, attached))
        drivers = [*attached.values()]
        for driver, limit in limits.items():
            self._free[driver].set(row, limit - drivers.count(driver))

    def _read_pods(self, row: int) -> None:
        """Read the volumes of pods that came, forget those of pods that left."""
        pods = self._table.volumes.pods(row)
        known = self._names.setdefault(row, {})
        self.errors.pop(row, None)
        for uid in [uid for uid in known if uid not in pods]:
            left = known.pop(uid)
            self._remove_names(row, left)
        new = [(uid, pod) for uid, pod in pods.items() if uid not in known]
        if not new:  # A pod's volumes never change.
            return
        reader = VolumeReader(self._cluster, migrated=True, strict=False)
        for uid, pod in new:
            try:
                known[uid] = reader.names(pod)
            except mp.PluginFailure as error:
                # Not stored, so that it is read again at the next refresh.
                self.errors.setdefault(row, str(error))
                continue
            for name in known[uid]:
                self._rows_of.setdefault(name, set()).add(row)
        for key in reader.volumes_seen:
            self._rows_by_volume.setdefault(key, set()).add(row)
        for key in reader.classes_seen:
            self._rows_by_class.setdefault(key, set()).add(row)

    def _remove_names(self, row: int, names: Names) -> None:
        """A pod with these volumes left; another one of the row may still use them."""
        others = self._names.get(row, {}).values()
        for name in names:
            rows = self._rows_of.get(name)
            if rows is not None and not any(name in each for each in others):
                rows.discard(row)
                if not rows:
                    del self._rows_of[name]

    def _without_pod(self, row: int, attached: Names) -> Names:
        """Volumes that are attached to a node though no pod there uses them."""
        attachments = self._cluster.derived(AttachmentsByNode).on(self._table.name(row))
        for attachment in attachments:
            self._rows_by_attachment.setdefault(attachment.key, set()).add(row)
            source = attachment.spec.source.persistent_volume_name
            if source:
                self._rows_by_volume.setdefault(source, set()).add(row)
        return csi_volumes.attached_without_pod(attachments, self._cluster, attached)
