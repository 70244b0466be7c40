"""Which changes could let a pod find its volumes."""

from moorage import plugin as mp
from moorage.plugins.volume_binding import provisioning

Claim = mp.PersistentVolumeClaim


def _hint(*, cured: bool) -> mp.Hint:
    return mp.Hint.QUEUE if cured else mp.Hint.QUEUE_SKIP


def own_claim(pod: mp.Pod, old: Claim | None, new: Claim) -> mp.Hint:
    return _hint(cured=mp.claims.uses(pod, new))


def other_topologies(pod: mp.Pod, old: mp.StorageClass | None, new: mp.StorageClass) -> mp.Hint:
    moved = old is None or old.allowed_topologies != new.allowed_topologies
    return _hint(cured=moved)


def other_migrations(pod: mp.Pod, old: mp.CSINode | None, new: mp.CSINode) -> mp.Hint:
    key = mp.csi_migration.MIGRATED_PLUGINS
    if old is None:
        return mp.Hint.QUEUE
    return _hint(cured=old.metadata.annotations.get(key) != new.metadata.annotations.get(key))


def no_accounts_any_more(pod: mp.Pod, old: mp.CSIDriver, new: mp.CSIDriver) -> mp.Hint:
    """A driver of an inline volume stopped to keep accounts; Kubernetes looks at no others."""
    inline = any(v.csi is not None and v.csi.driver == new.name for v in pod.spec.volumes)
    stopped = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    return _hint(cured=inline and stopped)


def more_capacity(
    pod: mp.Pod, old: mp.CSIStorageCapacity | None, new: mp.CSIStorageCapacity
) -> mp.Hint:
    if old is None:
        return mp.Hint.QUEUE
    before, now = provisioning.limit(old), provisioning.limit(new)
    return _hint(cured=now is not None and (before is None or now > before))


EVENTS: mp.Events = {
    mp.ClusterEvent.STORAGE_CLASS_ADD: other_topologies,
    mp.ClusterEvent.STORAGE_CLASS_UPDATE: other_topologies,
    mp.ClusterEvent.CLAIM_ADD: own_claim,
    mp.ClusterEvent.CLAIM_UPDATE: own_claim,
    mp.ClusterEvent.VOLUME_ADD: None,
    mp.ClusterEvent.VOLUME_UPDATE: None,
    mp.ClusterEvent.NODE_ADD: None,
    mp.ClusterEvent.UPDATE_NODE_LABEL: None,
    mp.ClusterEvent.CSI_NODE_ADD: other_migrations,
    mp.ClusterEvent.CSI_NODE_UPDATE: other_migrations,
    mp.ClusterEvent.CSI_DRIVER_UPDATE: no_accounts_any_more,
    mp.ClusterEvent.CSI_STORAGE_CAPACITY_ADD: more_capacity,
    mp.ClusterEvent.CSI_STORAGE_CAPACITY_UPDATE: more_capacity,
}
