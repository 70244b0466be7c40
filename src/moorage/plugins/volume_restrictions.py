"""VolumeRestrictions: disks and claims that only one pod may use.

A disk that a pod names itself (GCE PD, AWS EBS, iSCSI, RBD) cannot be shared on a node, unless all
pods use it read-only; an EBS volume not even then. A claim in the mode ReadWriteOncePod is for one
pod in the whole cluster: while a pod uses it every node is rejected, and preempting that pod helps
on its node.
"""

from dataclasses import dataclass

from moorage import plugin as mp
from moorage.plugins import claim_advice
from moorage.plugins.claim_advice import VolumePlugin, named_claims

NO_DISK = mp.unschedulable("node(s) had no available disk")
CLAIM_IN_USE = mp.unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)
ONE_POD_ONLY = "ReadWriteOncePod"


@dataclass(slots=True)
class ExclusiveVolumes:
    """The claims of a pod that it cannot share."""

    # The names of its ReadWriteOncePod claims.
    claims: frozenset[str]
    # How many of these claims other pods use.
    in_use: int


EXCLUSIVE = mp.StateKey[ExclusiveVolumes](
    "VolumeRestrictions.exclusive",
    missing='cannot read "PreFilterVolumeRestrictions" from cycleState',
)
DISKS = "VolumeRestrictions.disks"


class VolumeRestrictions(VolumePlugin):
    name = "VolumeRestrictions"
    reads_kinds = ("PersistentVolumeClaim",)

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        disks = _disks(state, pod)
        once = set()
        for name in named_claims(pod):
            claim = state.cluster.get(mp.PersistentVolumeClaim, f"{pod.namespace}/{name}")
            if claim is None:
                return mp.unresolvable(mp.claims.not_found(name))
            if ONE_POD_ONLY in claim.spec.access_modes:
                once.add(name)
        if not disks and not once:
            return mp.SKIP
        in_use = sum(_is_used(state.table, pod.namespace, name) for name in once)
        if not disks and not in_use:
            return mp.SKIP
        state[EXCLUSIVE] = ExclusiveVolumes(frozenset(once), in_use)
        return mp.SUCCESS

    def add_pod(
        self, state: mp.CycleState, pod: mp.Pod, other: mp.Placed, node: mp.NodeInfo
    ) -> None:
        state[EXCLUSIVE].in_use += _shared(state[EXCLUSIVE], other.pod)

    def remove_pod(
        self, state: mp.CycleState, pod: mp.Pod, other: mp.Placed, node: mp.NodeInfo
    ) -> None:
        state[EXCLUSIVE].in_use -= _shared(state[EXCLUSIVE], other.pod)

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        disks = _disks(state, pod)
        if disks:
            for other in node.placed().values():
                if not disks.isdisjoint(mp.volumes.uses_of(other.pod)):
                    return NO_DISK
        return CLAIM_IN_USE if state[EXCLUSIVE].in_use > 0 else mp.SUCCESS

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        codes = table.using(_disks(state, pod)).astype("int64")
        errors = {}
        if EXCLUSIVE not in state:
            otherwise = 3
            errors[otherwise] = EXCLUSIVE.missing
        else:
            otherwise = 2 if state[EXCLUSIVE].in_use > 0 else 0
        codes[codes == 0] = otherwise
        return mp.Verdicts(codes=codes, status_of=STATUSES.__getitem__, errors=errors)

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        if rejection.reason in NO_DISK.reasons:
            exclusive = conflicting_uses(rejection.pod)
            held = [
                f"{' '.join(use[:2])} by {other.key} on {node.name}"
                for node in rejection.nodes
                for other in node.pods
                for use in mp.volumes.uses_of(other)
                if use in exclusive
            ]
            return f"in use: {mp.texts.listed(held, 140)}."
        if rejection.reason not in CLAIM_IN_USE.reasons:
            return claim_advice.missing(rejection)
        parts = []
        for name, claim, _ in claim_advice.used(rejection):
            if claim is not None and ONE_POD_ONLY in claim.spec.access_modes:
                pods = _users(rejection.cluster.table, rejection.pod.namespace, name)
                users = [f"{pod.key} on {pod.node_name}" for pod in pods]
                if users:
                    text = mp.texts.listed(users, 140)
                    parts.append(f"claim {name} is for one pod at a time, now {text}")
        return claim_advice.sentence(parts)

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.POD_DELETE: frees_a_volume,
            mp.ClusterEvent.NODE_ADD: None,
            mp.ClusterEvent.CLAIM_ADD: claim_advice.names_claim,
        }


STATUSES = (mp.SUCCESS, NO_DISK, CLAIM_IN_USE)


def _disks(state: mp.CycleState, pod: mp.Pod) -> frozenset[mp.volumes.Use]:
    """The uses that conflict. Claims are not a part of them: they are the same for equal pods."""
    disks: frozenset[mp.volumes.Use] | None = state.template.compiled.get(DISKS)
    if disks is None:
        disks = state.template.compiled[DISKS] = conflicting_uses(pod)
    return disks


def conflicting_uses(pod: mp.Pod) -> frozenset[mp.volumes.Use]:
    """The uses by other pods that conflict with a pod's volumes on the same node."""
    found: list[mp.volumes.Use] = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:  # Else it is no disk that the pod names itself.
            found += mp.volumes.in_conflict(volume)
    return frozenset(found)


def _is_used(table: mp.NodeTable, namespace: str, claim: str) -> bool:
    """Whether a pod on some node uses a claim; one whose node is gone is not seen."""
    rows = table.volumes.rows(mp.volumes.claim_use(namespace, claim))
    return any(table.nodes[row] is not None for row in rows)


def _users(table: mp.NodeTable, namespace: str, claim: str) -> list[mp.Pod]:
    """The pods on nodes that use a claim."""
    rows = table.volumes.rows(mp.volumes.claim_use(namespace, claim))
    pods = (pod for row in sorted(rows) for pod in table.volumes.pods(row).values())
    return [pod for pod in pods if claim in mp.claims.names_of(pod)]


def _shared(exclusive: ExclusiveVolumes, other: mp.Pod) -> int:
    """How many volumes of another pod are of these claims.

    Kubernetes compares names alone, so a pod of another namespace may count.
    """
    return sum(name in exclusive.claims for name in named_claims(other))


def frees_a_volume(pod: mp.Pod, old: mp.Pod, new: None) -> mp.Hint:
    if old.namespace != pod.namespace:
        return mp.Hint.QUEUE_SKIP
    claims = {mp.volumes.claim_use(pod.namespace, name) for name in named_claims(pod)}
    frees = not (conflicting_uses(pod) | claims).isdisjoint(mp.volumes.uses_of(old))
    return mp.Hint.QUEUE if frees else mp.Hint.QUEUE_SKIP
