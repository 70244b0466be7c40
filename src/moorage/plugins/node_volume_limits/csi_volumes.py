"""The volumes of a pod that a CSI driver attaches, under names that identify them.

A claim that several pods use is one volume, and so are an in-tree disk and the CSI volume that it
was migrated to. A claim without a volume counts as the one that its class will provision. In-tree
volumes count on nodes that have a CSINode.
"""

from collections.abc import Iterable

from msgspec import Struct

from moorage import plugin as mp

DRIVERS = mp.csi_migration.DRIVERS
NOT_MIGRATED = mp.csi_migration.NOT_MIGRATED
# Starts the handle of a volume that is not provisioned yet; no driver uses such handles.
NOT_PROVISIONED = "moorage.dev/to-be-made"

# `driver/handle` -> driver
Names = dict[str, str]
DriverAndHandle = tuple[str, str]


class MissingClaimError(Exception):
    """A claim of a pod does not exist; the text is Kubernetes'."""


class VolumeReader(Struct):
    """Reads the volumes of pods, and collects the objects that it looked up."""

    cluster: mp.Cluster
    # Whether in-tree volumes count as CSI volumes.
    migrated: bool
    # Whether a missing claim is an error; for a pod that runs it is not.
    strict: bool
    volumes_seen: set[str] = set()
    classes_seen: set[str] = set()

    def names(self, pod: mp.Pod) -> Names:
        """The volumes of a pod; one that cannot be read raises."""
        names: Names = {}
        for volume in pod.spec.volumes:
            claim = mp.claims.name_of(pod, volume)
            found = self._inline(volume) if claim is None else self._claimed(pod, volume, claim)
            if found is not None:
                driver, handle = found
                names[f"{driver}/{handle}"] = driver
        return names

    def _claimed(self, pod: mp.Pod, volume: mp.Volume, name: str) -> DriverAndHandle | None:
        if not name:
            raise mp.PluginFailure("PersistentVolumeClaim had no name")
        claim = self.cluster.get(mp.PersistentVolumeClaim, f"{pod.namespace}/{name}")
        if claim is None:
            if self.strict:
                missing = mp.claims.not_found(name)
                raise MissingClaimError(f"looking up PVC {pod.namespace}/{name}: {missing}")
            return None
        if volume.ephemeral is not None and not mp.claims.is_made_for(claim, pod):
            raise mp.PluginFailure(mp.claims.not_made_for(claim, pod))
        bound_to = claim.spec.volume_name
        if bound_to:
            self.volumes_seen.add(bound_to)
            its_volume = self.cluster.get(mp.PersistentVolume, bound_to)
            if its_volume is not None:
                csi = its_volume.spec.csi
                return self._in_tree(its_volume) if csi is None else (csi.driver, csi.volume_handle)
        return self._not_provisioned(claim)

    def _in_tree(self, volume: mp.PersistentVolume) -> DriverAndHandle | None:
        spec = volume.spec
        driver = self._driver(mp.csi_migration.plugin_of(spec) or "")
        if driver is None:
            return None
        try:
            return driver, mp.csi_migration.handle_of(spec, volume.labels.items())
        except mp.csi_migration.MigrationError:
            return None

    def _not_provisioned(self, claim: mp.PersistentVolumeClaim) -> DriverAndHandle | None:
        name = mp.claims.class_of(claim)
        self.classes_seen.add(name)
        storage_class = self.cluster.get(mp.StorageClass, name) if name else None
        if storage_class is None:
            return None
        provisioner = storage_class.provisioner
        in_tree = provisioner in DRIVERS or provisioner in NOT_MIGRATED
        driver = self._driver(provisioner) if in_tree else provisioner
        return None if driver is None else (driver, f"{NOT_PROVISIONED}-{claim.key}")

    def _inline(self, volume: mp.Volume) -> DriverAndHandle | None:
        driver = self._driver(mp.csi_migration.plugin_of(volume) or "")
        if driver is None:
            return None
        try:
            return driver, mp.csi_migration.handle_of(volume)
        except mp.csi_migration.MigrationError as error:
            text = f"converting volume({volume.name}) from inline to csi: {error}"
            raise mp.PluginFailure(text) from error

    def _driver(self, in_tree: str) -> str | None:
        """The CSI driver that replaces an in-tree plugin, where one does."""
        return DRIVERS.get(in_tree) if self.migrated else None


def may_count(volume: mp.Volume) -> bool:
    """Whether a volume counts on some nodes; inline CSI volumes do not."""
    return (
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or mp.csi_migration.plugin_of(volume) is not None
    )


def limits_of(csi_node: mp.CSINode | None) -> dict[str, int]:
    """How many volumes each driver attaches to a node; drivers without a limit are left out."""
    if csi_node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def attached_without_pod(
    attachments: Iterable[mp.VolumeAttachment], cluster: mp.Cluster, used: Names
) -> Names:
    """Volumes that are attached to a node although no pod there uses them."""
    found: Names = {}
    for attachment in attachments:
        attacher = attachment.spec.attacher
        source = attachment.spec.source.persistent_volume_name
        volume = cluster.get(mp.PersistentVolume, source) if attacher and source else None
        if volume is not None and volume.spec.csi is not None:
            name = f"{attacher}/{volume.spec.csi.volume_handle}"
            if name not in used:
                found[name] = attacher
    return found


class AttachmentsByNode:
    """VolumeAttachments by node, brought up to date when they are read."""

    def __init__(self, cluster: mp.Cluster) -> None:
        self._cluster = cluster
        self._cursor = mp.Cursor(cluster.changes_of(mp.VolumeAttachment))
        self._of_node: dict[str, dict[str, mp.VolumeAttachment]] = {}
        self._node_of: dict[str, str] = {}

    def on(self, node: str) -> Iterable[mp.VolumeAttachment]:
        """The attachments to a node."""
        if not self._cursor.is_current:
            self._refresh()
        return self._of_node.get(node, {}).values()

    def _refresh(self) -> None:
        changed = self._cursor.changed()
        if changed is None:
            self._of_node.clear()
            self._node_of.clear()
            changed = [each.key for each in self._cluster.all(mp.VolumeAttachment)]
        for key in changed:
            self._set(key, self._cluster.get(mp.VolumeAttachment, key))
        self._cursor.commit()

    def _set(self, key: str, attachment: mp.VolumeAttachment | None) -> None:
        before = self._node_of.pop(key, None)
        if before is not None:
            del self._of_node[before][key]
        if attachment is not None:
            node = self._node_of[key] = attachment.spec.node_name
            self._of_node.setdefault(node, {})[key] = attachment
