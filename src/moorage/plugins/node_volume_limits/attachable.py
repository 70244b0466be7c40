"""The volumes of a pod that a CSI driver attaches, under names that tell them apart.

A claim that several pods use is one volume, and so are an in-tree disk and the CSI volume that it
has become. A claim without a volume counts as the one that its class will make for it. In-tree
volumes count where the node has CSI at all, which is when a CSINode is there.
"""

from dataclasses import dataclass, field

from moorage import plugin as mp
from moorage.plugins.node_volume_limits.attachments import Attachments

DRIVERS = mp.csi_migration.DRIVERS
NOT_MOVED = mp.csi_migration.NOT_MOVED
# Before the names of volumes that are still to be made; no driver hands out such handles.
TO_BE_MADE = "moorage.dev/to-be-made"

# `driver/handle` -> driver
Names = dict[str, str]
# Driver and handle.
Found = tuple[str, str]


class ClaimMissing(Exception):
    """A claim of a pod is not there; the text is Kubernetes'."""


@dataclass(frozen=True, slots=True)
class Attachable:
    """Reads pods' volumes, and notes what it looked at."""

    cluster: mp.Cluster
    # Whether in-tree volumes are CSI volumes, too.
    migrated: bool
    # Whether a claim that is not there is worth a complaint; a pod that runs has had its chance.
    strict: bool
    volumes_seen: set[str] = field(default_factory=set)
    classes_seen: set[str] = field(default_factory=set)

    def names(self, pod: mp.Pod) -> Names:
        """The volumes of a pod; trouble with one of them is raised."""
        found = (self._of(pod, volume) for volume in pod.spec.volumes)
        return {f"{each[0]}/{each[1]}": each[0] for each in found if each is not None}

    def _of(self, pod: mp.Pod, volume: mp.Volume) -> Found | None:
        name = mp.claims.name_of(pod, volume)
        if name is None:
            return self._inline(volume)
        if not name:
            raise mp.PluginFailure("PersistentVolumeClaim had no name")
        claim = self.cluster.get(mp.PersistentVolumeClaim, f"{pod.namespace}/{name}")
        if claim is None:
            if self.strict:
                missing = mp.claims.not_found(name)
                raise ClaimMissing(f"looking up PVC {pod.namespace}/{name}: {missing}")
            return None
        if volume.ephemeral is not None and not mp.claims.is_made_for(claim, pod):
            raise mp.PluginFailure(mp.claims.not_made_for(claim, pod))
        return self._behind(claim)

    def _behind(self, claim: mp.PersistentVolumeClaim) -> Found | None:
        name = claim.spec.volume_name
        if name:
            self.volumes_seen.add(name)
            volume = self.cluster.get(mp.PersistentVolume, name)
            if volume is not None:
                return self._of_volume(volume)
        return self._to_be_made(claim)

    def _of_volume(self, volume: mp.PersistentVolume) -> Found | None:
        spec = volume.spec
        if spec.csi is not None:
            return spec.csi.driver, spec.csi.volume_handle
        driver = self._driver(mp.csi_migration.plugin_of(spec) or "")
        if driver is None:
            return None
        try:
            return driver, mp.csi_migration.handle_of(spec, volume.labels.items())
        except mp.csi_migration.MigrationError:
            return None

    def _to_be_made(self, claim: mp.PersistentVolumeClaim) -> Found | None:
        name = mp.claims.class_of(claim)
        self.classes_seen.add(name)
        storage_class = self.cluster.get(mp.StorageClass, name) if name else None
        if storage_class is None:
            return None
        provisioner = storage_class.provisioner
        in_tree = provisioner in DRIVERS or provisioner in NOT_MOVED
        driver = self._driver(provisioner) if in_tree else provisioner
        return None if driver is None else (driver, f"{TO_BE_MADE}-{claim.key}")

    def _inline(self, volume: mp.Volume) -> Found | None:
        driver = self._driver(mp.csi_migration.plugin_of(volume) or "")
        if driver is None:
            return None
        try:
            return driver, mp.csi_migration.handle_of(volume)
        except mp.csi_migration.MigrationError as trouble:
            text = f"converting volume({volume.name}) from inline to csi: {trouble}"
            raise mp.PluginFailure(text) from trouble

    def _driver(self, in_tree: str) -> str | None:
        """The driver that took an in-tree plugin over, where one has."""
        return DRIVERS.get(in_tree) if self.migrated else None


def is_telling(volume: mp.Volume) -> bool:
    """Whether a volume is of a kind that counts on some nodes; inline CSI volumes are not."""
    return (
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or mp.csi_migration.plugin_of(volume) is not None
    )


def limits_of(csi_node: mp.CSINode | None) -> dict[str, int]:
    """How many volumes each driver attaches to a node, as far as it says."""
    if csi_node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def left_over(node: str, cluster: mp.Cluster, attached: Names) -> Names:
    """Volumes that are attached to a node though no pod there uses them."""
    found: Names = {}
    for attachment in cluster.derived(Attachments).on(node):
        attacher = attachment.spec.attacher
        source = attachment.spec.source.persistent_volume_name
        volume = cluster.get(mp.PersistentVolume, source) if attacher and source else None
        if volume is not None and volume.spec.csi is not None:
            name = f"{attacher}/{volume.spec.csi.volume_handle}"
            if name not in attached:
                found[name] = attacher
    return found
