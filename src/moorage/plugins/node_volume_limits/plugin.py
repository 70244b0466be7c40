"""NodeVolumeLimits: how many volumes a CSI driver can attach to a node.

The limits are in the node's CSINode; a driver that states none has no limit. Volumes count, not
pods: a claim that several pods of the node share is attached once. Volumes that are attached
although no pod of the node uses them any more count, too.
"""

from collections import Counter

import numpy as np
from msgspec import Struct

from moorage import plugin as mp
from moorage.plugins import claim_advice
from moorage.plugins.claim_advice import VolumePlugin
from moorage.plugins.node_volume_limits import csi_volumes
from moorage.plugins.node_volume_limits.attach_limits import AttachLimits
from moorage.plugins.node_volume_limits.csi_volumes import (
    AttachmentsByNode,
    MissingClaimError,
    Names,
    VolumeReader,
)

TOO_MANY = mp.unschedulable("node(s) exceed max volume count")

# A pod's volumes, a rejection, or an error to raise.
Outcome = Names | mp.Status | mp.PluginFailure


class PodVolumes(Struct, frozen=True):
    """The pod's volumes as they count on nodes with a CSINode, and on those without."""

    with_csi: Outcome
    without_csi: Outcome
    # With what it read for nodes with a CSINode.
    reader: VolumeReader


POD_VOLUMES = mp.StateKey[PodVolumes]("NodeVolumeLimits.new")


class NodeVolumeLimits(VolumePlugin):
    name = "NodeVolumeLimits"
    reads_kinds = (
        "PersistentVolume",
        "PersistentVolumeClaim",
        "StorageClass",
        "CSINode",
        "VolumeAttachment",
    )

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        if not any(map(csi_volumes.may_count, pod.spec.volumes)):
            return mp.SKIP
        state[POD_VOLUMES] = _read_both(state.cluster, pod)
        return mp.SUCCESS

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        csi_node, volumes = state.cluster.get(mp.CSINode, node.name), _volumes_in(state, pod)
        new = volumes.without_csi if csi_node is None else volumes.with_csi
        if isinstance(new, mp.PluginFailure):
            raise mp.PluginFailure(*new.args)
        if isinstance(new, mp.Status):
            return new
        limits = csi_volumes.limits_of(csi_node)
        if not new or not limits:
            return mp.SUCCESS
        reader = VolumeReader(state.cluster, migrated=True, strict=False)
        attached: Names = {}
        for other in node.placed().values():
            if other.usage.has_volumes:
                attached.update(reader.names(other.pod))
        counts = Counter(attached.values())
        attachments = state.cluster.derived(AttachmentsByNode).on(node.name)
        others = csi_volumes.attached_without_pod(attachments, state.cluster, attached)
        counts.update(others.values())
        more = Counter(driver for name, driver in new.items() if name not in attached)
        if any(counts[driver] + n > limits.get(driver, np.inf) for driver, n in more.items()):
            return TOO_MANY
        return mp.SUCCESS

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        new, attached = _volumes_in(state, pod), state.cluster.derived(AttachLimits).refresh()
        if isinstance(new.with_csi, dict):
            attached.remember(pod, new.reader, new.with_csi)
            return _exceeding(new.with_csi, attached, table)
        return _unreadable(new, table.take(attached.has_csi_node))

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        return _explain(rejection) if rejection.reason in TOO_MANY.reasons else ""

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.CSI_NODE_ADD: None,
            mp.ClusterEvent.CSI_NODE_UPDATE: raises_a_limit,
            mp.ClusterEvent.POD_DELETE: detaches,
            mp.ClusterEvent.CLAIM_ADD: is_wanted,
            mp.ClusterEvent.VOLUME_ATTACHMENT_DELETE: is_detached,
        }


def _volumes_in(state: mp.CycleState, pod: mp.Pod) -> PodVolumes:
    """What pre_filter stored, or the same if the profile does not call it."""
    found = state.get(POD_VOLUMES, None)
    return _read_both(state.cluster, pod) if found is None else found


def _read_both(cluster: mp.Cluster, pod: mp.Pod) -> PodVolumes:
    reader = VolumeReader(cluster, migrated=True, strict=True)
    with_csi = _read(reader, pod)
    # Without a CSINode there are no limits, so what counts there matters only if it is unclear.
    without_csi: Outcome = {}
    if not isinstance(with_csi, dict):
        without_csi = _read(VolumeReader(cluster, migrated=False, strict=True), pod)
    return PodVolumes(with_csi, without_csi, reader)


def _read(reader: VolumeReader, pod: mp.Pod) -> Outcome:
    try:
        return reader.names(pod)
    except MissingClaimError as missing:
        return mp.unresolvable(str(missing))
    except mp.PluginFailure as error:
        return mp.PluginFailure(*error.args)  # Without the frames that it came through.


def _exceeding(new: Names, attached: AttachLimits, table: mp.Rows) -> mp.Verdicts:
    """The verdicts on nodes to which these volumes would have to be attached."""
    if not attached.errors and attached.all_take(new):
        return mp.Verdicts(all_fit=len(table))
    exceeds = np.zeros(len(table), dtype=np.bool_)
    for driver in dict.fromkeys(new.values()):
        free = attached.free(driver)
        if free is not None:
            names = [name for name, by in new.items() if by == driver]
            exceeds |= table.take(free < attached.more(names))
    if not new or not attached.errors:
        return mp.Verdicts(fits=~exceeds, otherwise=TOO_MANY)
    codes = np.zeros(len(attached.has_csi_node), dtype=np.int64)
    for code, row in enumerate(attached.errors, 2):
        codes[row] = code
    return mp.Verdicts(
        codes=np.maximum(table.take(codes), exceeds),
        status_of={1: TOO_MANY}.__getitem__,
        errors=dict(enumerate(attached.errors.values(), 2)),
    )


def _unreadable(new: PodVolumes, has_csi_node: mp.Mask) -> mp.Verdicts:
    """The verdicts if the pod's volumes could not be read, at least for nodes with a CSINode."""
    outcomes = {1: new.with_csi, 2: new.without_csi}
    codes = np.where(has_csi_node, 1, 0 if isinstance(new.without_csi, dict) else 2)
    statuses = {code: each for code, each in outcomes.items() if isinstance(each, mp.Status)}
    raised = {
        code: str(each) for code, each in outcomes.items() if isinstance(each, mp.PluginFailure)
    }
    return mp.Verdicts(codes=codes, status_of=statuses.__getitem__, errors=raised)


# Hints


def raises_a_limit(pod: mp.Pod, old: mp.CSINode, new: mp.CSINode) -> mp.Hint:
    before = csi_volumes.limits_of(old)
    raised = any(n > before.get(driver, 0) for driver, n in csi_volumes.limits_of(new).items())
    return mp.Hint.QUEUE if raised else mp.Hint.QUEUE_SKIP


def detaches(pod: mp.Pod, old: mp.Pod, new: None) -> mp.Hint:
    held_room = old.node_name or old.status.nominated_node_name
    if held_room and any(map(csi_volumes.may_count, old.spec.volumes)):
        return mp.Hint.QUEUE
    return mp.Hint.QUEUE_SKIP


def is_wanted(pod: mp.Pod, old: None, new: mp.PersistentVolumeClaim) -> mp.Hint:
    return mp.Hint.QUEUE if mp.claims.uses(pod, new) else mp.Hint.QUEUE_SKIP


def is_detached(pod: mp.Pod, old: mp.VolumeAttachment, new: None) -> mp.Hint:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return mp.Hint.QUEUE
        plugin = mp.csi_migration.plugin_of(volume)
        if plugin is not None and csi_volumes.DRIVERS.get(plugin) == old.spec.attacher:
            return mp.Hint.QUEUE
    return mp.Hint.QUEUE_SKIP


# Explanation


def _explain(rejection: mp.Rejection) -> str:
    """The pod's volumes and the limits of their drivers."""
    drivers, parts = set(), []
    for used in claim_advice.used(rejection):
        driver = _driver(rejection.cluster, used)
        if driver:
            drivers.add(driver)
            which = "a volume to be made" if used.volume is None else used.volume.name
            parts.append(f"claim {used.name} is {which} of {driver}")
    for volume in rejection.pod.spec.volumes:
        driver = csi_volumes.DRIVERS.get(mp.csi_migration.plugin_of(volume) or "", "")
        if driver:
            drivers.add(driver)
            parts.append(f"volume {volume.name} is a disk of {driver}")
    limits = Counter(
        f"{limit} of {driver}"
        for node in rejection.nodes
        for driver, limit in csi_volumes.limits_of(
            rejection.cluster.get(mp.CSINode, node.name)
        ).items()
        if driver in drivers
    )
    parts.append(f"attached at most: {mp.texts.counted(limits, 'node', 140)}")
    return claim_advice.sentence(parts)


def _driver(cluster: mp.Cluster, used: claim_advice.UsedClaim) -> str:
    if used.volume is not None:
        spec = used.volume.spec
        in_tree = csi_volumes.DRIVERS.get(mp.csi_migration.plugin_of(spec) or "", "")
        return in_tree if spec.csi is None else spec.csi.driver
    name = "" if used.claim is None else mp.claims.class_of(used.claim)
    storage_class = cluster.get(mp.StorageClass, name)
    provisioner = "" if storage_class is None else storage_class.provisioner
    return csi_volumes.DRIVERS.get(provisioner, provisioner)
