"""Which changes could make room for another volume."""

from moorage import plugin as mp
from moorage.plugins.node_volume_limits import attachable

QUEUE, QUEUE_SKIP = mp.Hint.QUEUE, mp.Hint.QUEUE_SKIP


def raises_a_limit(pod: mp.Pod, old: mp.CSINode, new: mp.CSINode) -> mp.Hint:
    before = attachable.limits_of(old)
    raised = any(n > before.get(driver, 0) for driver, n in attachable.limits_of(new).items())
    return QUEUE if raised else QUEUE_SKIP


def detaches(pod: mp.Pod, old: mp.Pod, new: None) -> mp.Hint:
    held_room = old.node_name or old.status.nominated_node_name
    if held_room and any(map(attachable.is_telling, old.spec.volumes)):
        return QUEUE
    return QUEUE_SKIP


def is_wanted(pod: mp.Pod, old: None, new: mp.PersistentVolumeClaim) -> mp.Hint:
    return QUEUE if mp.claims.uses(pod, new) else QUEUE_SKIP


def is_detached(pod: mp.Pod, old: mp.VolumeAttachment, new: None) -> mp.Hint:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return QUEUE
        plugin = mp.csi_migration.plugin_of(volume)
        if plugin is not None and attachable.DRIVERS.get(plugin) == old.spec.attacher:
            return QUEUE
    return QUEUE_SKIP
