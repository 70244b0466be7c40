"""NodeVolumeLimits: a CSI driver attaches no more volumes to a node than it can.

How many it can is in the node's CSINode; a driver that states nothing has no limit. What counts is
volumes, not pods: a claim that several pods of the node share is attached once. Volumes that are
attached though no pod of the node uses them any more count, too.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from moorage import plugin as mp
from moorage.plugins.node_volume_limits import advice, attachable, hints
from moorage.plugins.node_volume_limits.attachable import Attachable, ClaimMissing, Names
from moorage.plugins.node_volume_limits.attached import AttachedVolumes

TOO_MANY = mp.unschedulable("node(s) exceed max volume count")

# A pod's volumes, a refusal, or what is to be raised.
Outcome = Names | mp.Status | mp.PluginFailure


@dataclass(frozen=True, slots=True)
class New:
    """What came of reading a pod's volumes, for nodes with a CSINode and for those without."""

    with_csi: Outcome
    without_csi: Outcome


NEW = mp.StateKey[New]("NodeVolumeLimits.new")


class NodeVolumeLimits:
    name = "NodeVolumeLimits"
    depends = mp.Depends.PLACEMENTS
    reads_kinds = (
        "PersistentVolume",
        "PersistentVolumeClaim",
        "StorageClass",
        "CSINode",
        "VolumeAttachment",
    )

    def skip_key(self, state: mp.CycleState, pod: mp.Pod) -> Hashable:
        """A pod without volumes that matter is skipped for good."""
        return None if state.template.usage.has_volumes else mp.ALWAYS

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        if not state.template.usage.has_volumes:
            return mp.SKIP
        if not any(map(attachable.is_telling, pod.spec.volumes)):
            return mp.SKIP
        state[NEW] = New(
            _read(Attachable(state.cluster, migrated=True, strict=True), pod),
            _read(Attachable(state.cluster, migrated=False, strict=True), pod),
        )
        return mp.SUCCESS

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        csi_node = state.cluster.get(mp.CSINode, node.name)
        new = state[NEW].without_csi if csi_node is None else state[NEW].with_csi
        if isinstance(new, mp.PluginFailure):
            raise mp.PluginFailure(*new.args)
        if isinstance(new, mp.Status):
            return new
        limits = attachable.limits_of(csi_node)
        if not new or not limits:
            return mp.SUCCESS
        reader = Attachable(state.cluster, migrated=True, strict=False)
        attached: Names = {}
        for other in node.placed().values():
            if other.usage.has_volumes:
                attached.update(reader.names(other.pod))
        counts = Counter(attached.values())
        counts.update(attachable.left_over(node.name, state.cluster, attached).values())
        more = Counter(driver for name, driver in new.items() if name not in attached)
        if any(counts[driver] + n > limits.get(driver, np.inf) for driver, n in more.items()):
            return TOO_MANY
        return mp.SUCCESS

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        new, attached = state[NEW], state.cluster.derived(AttachedVolumes).refresh()
        if isinstance(new.with_csi, dict):
            return _exceeding(new.with_csi, attached, table)
        return _hopeless(new, table.take(attached.has_csi_node))

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        return advice.explain(rejection) if rejection.reason in TOO_MANY.reasons else ""

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.CSI_NODE_ADD: None,
            mp.ClusterEvent.CSI_NODE_UPDATE: hints.raises_a_limit,
            mp.ClusterEvent.POD_DELETE: hints.detaches,
            mp.ClusterEvent.CLAIM_ADD: hints.is_wanted,
            mp.ClusterEvent.VOLUME_ATTACHMENT_DELETE: hints.is_detached,
        }


def _read(reader: Attachable, pod: mp.Pod) -> Outcome:
    try:
        return reader.names(pod)
    except ClaimMissing as missing:
        return mp.unresolvable(str(missing))
    except mp.PluginFailure as trouble:
        return mp.PluginFailure(*trouble.args)  # Without the frames that it came through.


def _exceeding(new: Names, attached: AttachedVolumes, table: mp.Rows) -> mp.Verdicts:
    """The verdicts on nodes to which these volumes would have to be attached."""
    exceeds = np.zeros(len(table), dtype=np.bool_)
    for driver in dict.fromkeys(new.values()):
        free = attached.free(driver)
        if free is not None:
            names = [name for name, by in new.items() if by == driver]
            exceeds |= table.take(free < attached.more(names))
    if not new or not attached.troubles:
        return mp.Verdicts(fits=~exceeds, otherwise=TOO_MANY)
    codes = np.zeros(len(attached.has_csi_node), dtype=np.int64)
    for code, row in enumerate(attached.troubles, 2):
        codes[row] = code
    return mp.Verdicts(
        codes=np.maximum(table.take(codes), exceeds),
        status_of={1: TOO_MANY}.__getitem__,
        troubles=dict(enumerate(attached.troubles.values(), 2)),
    )


def _hopeless(new: New, has_csi_node: mp.Mask) -> mp.Verdicts:
    """The verdicts if the pod's volumes could not be read, at least for nodes with a CSINode."""
    outcomes = {1: new.with_csi, 2: new.without_csi}
    codes = np.where(has_csi_node, 1, 0 if isinstance(new.without_csi, dict) else 2)
    statuses = {code: each for code, each in outcomes.items() if isinstance(each, mp.Status)}
    raised = {
        code: str(each) for code, each in outcomes.items() if isinstance(each, mp.PluginFailure)
    }
    return mp.Verdicts(codes=codes, status_of=statuses.__getitem__, troubles=raised)
