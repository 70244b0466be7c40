"""AttachLimits: for every row and driver, how many more volumes can be attached.

For the whole-cluster form. It is brought up to date when it is read. A pod that came or went
changes the counts of its volumes. A row is counted anew when its CSINode or VolumeAttachments
changed, or a claim, volume or class that one of its pods uses.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
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

    def change(self, row: int, change: int) -> None:
        """Add to the number of one row."""
        self.set(row, self.values.item(row) + change)

    def grow(self, more: int) -> None:
        """Add rows without a limit."""
        self.values = np.pad(self.values, (0, more), constant_values=UNLIMITED)

    def all_take(self, count: int) -> bool:
        """Whether every row takes so many more volumes."""
        if count > self._least:
            self._least = int(self.values.min())
        return count <= self._least


class RowVolumes(Struct):
    """The volumes of a row that has limits."""

    # By driver.
    limits: dict[str, int]
    # Those of VolumeAttachments, whether a pod of the row uses them or not.
    attached: Names
    # Those of pods, by UID, and how many of the pods use each.
    of_pods: dict[str, Names] = {}
    users: dict[str, int] = {}


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
        # What was read of the pod that was decided on last, which is most often the next to come.
        self._latest: tuple[str, int, VolumeReader, Names] = ("", -1, self._new_reader(), {})
        self._forget()

    def _new_reader(self) -> VolumeReader:
        return VolumeReader(self._cluster, migrated=True, strict=False)

    def _forget(self) -> None:
        self._capacity = 0
        # By driver: the limits minus the volumes that are attached.
        self._free: dict[str, FreeAttachments] = {}
        # Of the rows that have limits.
        self._volumes: dict[int, RowVolumes] = {}
        # Rows that have a CSINode.
        self.has_csi_node: mp.Mask = np.zeros(0, dtype=np.bool_)
        # Rows on which a pod's volumes cannot be counted, and why.
        self.errors: dict[int, str] = {}
        # Rows where pods use a volume, by the volume's name.
        self._rows_of: dict[str, set[int]] = {}
        # Rows to recompute when one of these changes; may have too many.
        self._rows_by_volume: dict[str, set[int]] = {}
        self._rows_by_class: dict[str, set[int]] = {}
        self._rows_by_attachment: dict[str, set[int]] = {}

    def remember(self, pod: mp.Pod, reader: VolumeReader, names: Names) -> None:
        """What was read of a pod need not be read again when it comes to a node."""
        self._latest = (pod.metadata.uid, self._cluster.version, reader, names)

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
        table, pods = self._table, self._pods
        stamp = (self._cluster.version, table.node_changes.position, table.capacity)
        if stamp != self._stamp:
            self._refresh_all(pods.changed())
            pods.commit()
            self._stamp = stamp
        elif not pods.is_current:
            rows = pods.take()
            try:
                self._follow(rows)
            except BaseException:
                self._stamp = (-1, -1, -1)
                pods.restart()
                raise
        return self

    def _follow(self, rows: Sequence[int] | None) -> None:
        """Take in that pods came or went; None: anywhere."""
        if rows is None:
            self._recompute()
        else:
            for row in rows if len(rows) == 1 else dict.fromkeys(rows):
                self._follow_pods(row)

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
        if not self._volumes:  # No row has limits, so nothing is counted.
            claims = volumes = classes = attachments = pods = ()
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
        for row in sorted(stale):
            self._compute(row)
        for row in dict.fromkeys(pods):
            if row not in stale:
                self._follow_pods(row)

    def _drop(self, row: int) -> None:
        """Forget the limits and volumes of a row."""
        self.errors.pop(row, None)
        volumes = self._volumes.pop(row, None)
        if volumes is not None:
            for driver in volumes.limits:
                self._free[driver].set(row, UNLIMITED)
            for name in volumes.users:
                self._leave(row, name)

    def _compute(self, row: int) -> None:
        """Read the limits of a row, and count its volumes."""
        self._drop(row)
        name = self._table.name(row)
        csi_node = self._cluster.get(mp.CSINode, name) if name else None
        self.has_csi_node[row] = csi_node is not None
        limits = csi_volumes.limits_of(csi_node)
        if not limits:
            return
        volumes = self._volumes[row] = RowVolumes(limits, self._attached_to(row, name))
        drivers = [*volumes.attached.values()]
        for driver, limit in limits.items():
            if driver not in self._free:
                self._free[driver] = FreeAttachments(self._capacity)
            self._free[driver].set(row, limit - drivers.count(driver))
        self._follow_pods(row)

    def _follow_pods(self, row: int) -> None:
        """Count the volumes of pods that came, and no longer those of pods that left."""
        volumes = self._volumes.get(row)
        if volumes is None:
            return
        pods, known = self._table.volumes.pods(row), volumes.of_pods
        self.errors.pop(row, None)
        if not known.keys() <= pods.keys():
            for uid in [uid for uid in known if uid not in pods]:
                self._remove_pod(row, volumes, uid)
        if len(pods) > len(known):  # A pod's volumes never change.
            new = pods.keys() - known.keys()
            for uid in new if len(new) == 1 else [uid for uid in pods if uid in new]:
                self._add_pod(row, volumes, uid, pods[uid])

    def _add_pod(self, row: int, volumes: RowVolumes, uid: str, pod: mp.Pod) -> None:
        latest, version, reader, names = self._latest
        try:
            if latest != uid or version != self._cluster.version:
                reader = self._new_reader()
                names = reader.names(pod)
            volumes.of_pods[uid] = names
        except mp.PluginFailure as error:
            # Not stored, so that it is read again when something changes.
            names = {}
            self.errors.setdefault(row, str(error))
        users = volumes.users
        for name, driver in names.items():
            known = users.get(name, 0)
            users[name] = known + 1
            if not known:
                self._rows_of.setdefault(name, set()).add(row)
                if driver in volumes.limits and name not in volumes.attached:
                    self._free[driver].change(row, -1)
        for key in reader.volumes_seen:
            self._rows_by_volume.setdefault(key, set()).add(row)
        for key in reader.classes_seen:
            self._rows_by_class.setdefault(key, set()).add(row)

    def _remove_pod(self, row: int, volumes: RowVolumes, uid: str) -> None:
        """A pod left; others of the row may still use its volumes."""
        users = volumes.users
        for name, driver in volumes.of_pods.pop(uid).items():
            users[name] -= 1
            if not users[name]:
                del users[name]
                self._leave(row, name)
                if driver in volumes.limits and name not in volumes.attached:
                    self._free[driver].change(row, 1)

    def _leave(self, row: int, name: str) -> None:
        """No pod of a row uses a volume any more."""
        rows = self._rows_of[name]
        rows.discard(row)
        if not rows:
            del self._rows_of[name]

    def _attached_to(self, row: int, node: str) -> Names:
        """The volumes that are attached to a node, with or without a pod that uses them."""
        attachments = self._cluster.derived(AttachmentsByNode).on(node)
        for attachment in attachments:
            self._rows_by_attachment.setdefault(attachment.key, set()).add(row)
            source = attachment.spec.source.persistent_volume_name
            if source:
                self._rows_by_volume.setdefault(source, set()).add(row)
        return csi_volumes.attached_without_pod(attachments, self._cluster, {})
