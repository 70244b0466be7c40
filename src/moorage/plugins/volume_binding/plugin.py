"""VolumeBinding: a node must access the pod's volumes, have matching ones, or get new ones.

    pre_filter     read the pod's claims; reject the pod if a claim cannot be used on any node
    filter         the node must access the volumes that claims have; for the others a volume has
                   to exist, or the storage class must be able to provision one
    reserve        assume the changes of volumes and claims, so that other pods see them
    pre_bind       write them, then wait for the volume controllers, up to `bind_timeout_seconds`
    unreserve      drop the changes that were not written

With a `shape` (in Kubernetes behind the gate StorageCapacityScoring) nodes are scored by how full
their storage would be.
"""

from collections.abc import Sequence

from moorage import plugin as mp
from moorage.plugins import utilization_shape
from moorage.plugins.claim_advice import VolumePlugin
from moorage.plugins.volume_binding import advice, binding, finding
from moorage.plugins.volume_binding.binding import BindingPlan, BindingProgress, PreBindResult
from moorage.plugins.volume_binding.finding import Found
from moorage.plugins.volume_binding.pod_claims import Claim, PodClaims, VolumeError, read_claims

CLAIMS = mp.StateKey[PodClaims]("VolumeBinding.claims", missing="not found")
PLAN = mp.StateKey[BindingPlan]("VolumeBinding.plan")
PROGRESS = mp.StateKey[BindingProgress]("VolumeBinding.progress")

NO_CLAIMS = PodClaims()
NOTHING = BindingPlan()


class VolumeBinding(VolumePlugin):
    name = "VolumeBinding"
    reads_kinds = (
        "PersistentVolume",
        "PersistentVolumeClaim",
        "StorageClass",
        "CSINode",
        "CSIDriver",
        "CSIStorageCapacity",
    )
    permissions = (
        mp.Permission("", "persistentvolumes", ("patch",)),
        mp.Permission("", "persistentvolumeclaims", ("patch",)),
    )

    def __init__(
        self,
        *,
        bind_timeout_seconds: int = 600,
        shape: Sequence[mp.UtilizationShapePoint] | None = None,
    ) -> None:
        self._timeout_seconds = float(bind_timeout_seconds)
        self._shape = tuple(shape or ())

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        claims = read_claims(state.cluster, pod)
        if isinstance(claims, mp.Status):
            return claims
        state[CLAIMS] = claims
        return mp.SUCCESS

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        return finding.STATUSES[finding.find(state.cluster, state[CLAIMS], node.node).problems]

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        claims = state[CLAIMS]
        if finding.fit_everywhere(state.cluster, claims):
            return mp.Verdicts(all_fit=len(table))
        problems, errors = finding.find_all(state.cluster, claims)
        status_of = finding.STATUSES.__getitem__
        return mp.Verdicts(codes=table.take(problems), status_of=status_of, errors=errors)

    def pre_score(self, state: mp.CycleState, pod: mp.Pod, feasible: mp.Mask) -> mp.Status:
        if not self._shape:
            return mp.SKIP
        self._claims(state)
        return mp.SUCCESS

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        if not self._shape or not (claims := self._claims(state)).delayed:
            return 0
        return _score(finding.find(state.cluster, claims, node.node), self._shape)

    def _claims(self, state: mp.CycleState) -> PodClaims:
        """The claims for which filter finds volumes; none if pre_filter skipped the pod.

        Raises if the profile does not call pre_filter.
        """
        if CLAIMS not in state and state.is_called(self.name, "pre_filter"):
            return NO_CLAIMS
        claims = state[CLAIMS]
        return claims if state.is_called(self.name, "filter") else NO_CLAIMS

    def reserve(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> mp.Status:
        claims = self._claims(state)
        there = state.table.node(node) if claims.delayed else None
        if there is None:
            state[PLAN] = NOTHING
            return mp.SUCCESS
        plan = binding.plan(finding.find(state.cluster, claims, there), node)
        binding.assume(state.cluster, plan, pod)
        state[PLAN] = plan
        return mp.SUCCESS

    def unreserve(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> None:
        # What was written stays assumed until its watch event arrives.
        progress = state.get(PROGRESS, BindingProgress())
        written, to_write = progress.written, state.get(PLAN, BindingPlan()).to_write
        if written < len(to_write) and PROGRESS in state and state.done > progress.done_before:
            # The binding was preempted, or its pod deleted, while this object was being written.
            state.cluster.settle(to_write[written])
            written += 1
        binding.restore(state.cluster, to_write[written:])

    def pre_bind_pre_flight(
        self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName
    ) -> mp.Status:
        there = state.table.node(node)
        if PLAN not in state and self._claims(state) != NO_CLAIMS and there is not None:
            # The profile does not call reserve, so nothing is assumed, and nothing to be written.
            found = finding.find(state.cluster, state[CLAIMS], there)
            provisioned = tuple(each.claim for each in found.provisioned)
            state[PLAN] = BindingPlan(tuple(found.matched), provisioned)
        if PLAN not in state:
            raise VolumeError(f'no pod volume found for node "{node}"')
        return mp.SKIP if state[PLAN].is_empty else mp.SUCCESS

    def pre_bind(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> PreBindResult:
        state[PROGRESS] = BindingProgress()
        return self._go_on(state, pod, node)

    def pre_bind_next(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> PreBindResult:
        progress, to_write = state[PROGRESS], state[PLAN].to_write
        if progress.written < len(to_write):
            state.cluster.settle(to_write[progress.written])
            state[PROGRESS] = BindingProgress(progress.written + 1)
        return self._go_on(state, pod, node)

    def _go_on(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> PreBindResult:
        plan, (written, until, _) = state[PLAN], state[PROGRESS]
        if written < len(plan.to_write):
            state[PROGRESS] = BindingProgress(written, done_before=state.done)
            return (binding.request(plan.to_write[written], pod),)
        if until is None:
            until = state.now + self._timeout_seconds
            state[PROGRESS] = BindingProgress(written, until)
        return binding.await_binding(state.cluster, plan, node, until, state.now)

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        return advice.explain(rejection)

    def events_to_register(self) -> mp.Events:
        return EVENTS


# Score


def _score(found: Found, shape: Sequence[mp.UtilizationShapePoint]) -> int:
    """The mean rating of the storage classes that the pod uses; 0 if there is none."""
    ratings = [
        utilization_shape.rating(shape, _utilization(*amounts))
        for amounts in _by_class(found).values()
    ]
    if not ratings:
        return 0
    # Rounded half up; ratings are not negative.
    return (2 * sum(ratings) + len(ratings)) // (2 * len(ratings))


def _by_class(found: Found) -> dict[str, tuple[int, int]]:
    """What is requested of each class, and its capacity; existing volumes come first."""
    amounts: dict[str, tuple[int, int]] = {}
    for claim, volume in found.matched:
        requested, capacity = amounts.get(name := mp.claims.class_of(volume), (0, 0))
        there = mp.quantity.value_of_nano(mp.claims.capacity_nano(volume))
        amounts[name] = (requested + _requested(claim), capacity + there)
    if amounts:
        return amounts
    for each in found.provisioned:
        if each.capacity is not None:
            requested, _ = amounts.get(name := each.capacity.storage_class_name, (0, 0))
            # Not added up, as in Kubernetes: all claims use one pool.
            there = mp.quantity.value(each.capacity.capacity or 0)
            amounts[name] = (requested + _requested(each.claim), there)
    return amounts


def _requested(claim: mp.PersistentVolumeClaim) -> int:
    return mp.quantity.value_of_nano(mp.claims.requested_nano(claim))


def _utilization(requested: int, capacity: int) -> int:
    return 100 if capacity == 0 or requested > capacity else requested * 100 // capacity


# Hints


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


def no_capacity_tracking(pod: mp.Pod, old: mp.CSIDriver, new: mp.CSIDriver) -> mp.Hint:
    """The driver of an inline volume stopped publishing capacity; others do not matter."""
    inline = any(v.csi is not None and v.csi.driver == new.name for v in pod.spec.volumes)
    stopped = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    return _hint(cured=inline and stopped)


def more_capacity(
    pod: mp.Pod, old: mp.CSIStorageCapacity | None, new: mp.CSIStorageCapacity
) -> mp.Hint:
    if old is None:
        return mp.Hint.QUEUE
    before, now = finding.limit(old), finding.limit(new)
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
    mp.ClusterEvent.CSI_DRIVER_UPDATE: no_capacity_tracking,
    mp.ClusterEvent.CSI_STORAGE_CAPACITY_ADD: more_capacity,
    mp.ClusterEvent.CSI_STORAGE_CAPACITY_UPDATE: more_capacity,
}
