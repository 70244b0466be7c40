"""The plugin: what each extension point does about a pod's claims.

    pre_filter     sort the pod's claims; refuse what no node could cure
    filter         the volumes that claims have must reach the node; for the others a volume has
                   to be there, or it must be possible to make one
    reserve        take them, so that nobody else does (assumed until the world shows it)
    pre_bind       write it, then wait for the volume controllers, up to `bind_timeout_seconds`
    unreserve      give up what was not written

With a `shape` (in Kubernetes behind the gate StorageCapacityScoring) nodes are scored by how full
their storage would be.
"""

from collections.abc import Hashable, Sequence

from moorage import plugin as mp
from moorage.plugins.volume_binding import advice, assuming, finding, hints, pre_bind, scoring
from moorage.plugins.volume_binding.assuming import Record
from moorage.plugins.volume_binding.pod_claims import PodClaims, VolumeError, sort_out
from moorage.plugins.volume_binding.pre_bind import Answer, Progress

CLAIMS = mp.StateKey[PodClaims]("VolumeBinding.claims")
RECORD = mp.StateKey[Record]("VolumeBinding.record")
PROGRESS = mp.StateKey[Progress]("VolumeBinding.progress")

NO_CLAIMS = PodClaims()
NOTHING = Record()


class VolumeBinding:
    name = "VolumeBinding"
    # Claims, volumes, classes, drivers and capacities, and what others have assumed of them.
    depends = mp.Depends.PLACEMENTS
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

    def skip_key(self, state: mp.CycleState, pod: mp.Pod) -> Hashable:
        """A pod without volumes that matter is skipped for good."""
        return None if state.template.usage.has_volumes else mp.ALWAYS

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        if not state.template.usage.has_volumes:
            return mp.SKIP
        claims = sort_out(state.cluster, pod)
        if isinstance(claims, mp.Status):
            return claims
        state[CLAIMS] = claims
        return mp.SUCCESS

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        return finding.status(finding.find(state.cluster, state[CLAIMS], node.node).problems)

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        problems = table.take(finding.find_all(state.cluster, state[CLAIMS]))
        return mp.Verdicts(codes=problems, status_of=finding.status)

    def pre_score(self, state: mp.CycleState, pod: mp.Pod, feasible: mp.Mask) -> mp.Status:
        return mp.SUCCESS if self._shape else mp.SKIP

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        claims = state.get(CLAIMS, PodClaims())
        return scoring.score(finding.find(state.cluster, claims, node.node), self._shape)

    def reserve(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> mp.Status:
        claims = state.get(CLAIMS, NO_CLAIMS)
        there = state.table.node(node) if claims.delayed else None
        if there is None:
            state[RECORD] = NOTHING
            return mp.SUCCESS
        record = assuming.record(finding.find(state.cluster, claims, there), node)
        assuming.assume(state.cluster, record, pod)
        state[RECORD] = record
        return mp.SUCCESS

    def unreserve(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> None:
        # What was written stays as it is seen until the news of it comes.
        written = state.get(PROGRESS, Progress()).written
        assuming.restore(state.cluster, state.get(RECORD, Record()).to_write[written:])

    def pre_bind_pre_flight(
        self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName
    ) -> mp.Status:
        if RECORD not in state:
            raise VolumeError(f'no pod volume found for node "{node}"')
        return mp.SKIP if state[RECORD].is_empty else mp.SUCCESS

    def pre_bind(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> Answer:
        state[PROGRESS] = Progress()
        return self._go_on(state, pod, node)

    def pre_bind_next(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> Answer:
        progress, to_write = state[PROGRESS], state[RECORD].to_write
        if progress.written < len(to_write):
            state.cluster.settle(to_write[progress.written])
            state[PROGRESS] = Progress(progress.written + 1)
        return self._go_on(state, pod, node)

    def _go_on(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> Answer:
        record, (written, until) = state[RECORD], state[PROGRESS]
        if written < len(record.to_write):
            return (pre_bind.request(record.to_write[written], pod),)
        if until is None:
            until = state.now + self._timeout_seconds
            state[PROGRESS] = Progress(written, until)
        return pre_bind.await_binding(state.cluster, record, node, until, state.now)

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        return advice.explain(rejection)

    def events_to_register(self) -> mp.Events:
        return hints.EVENTS
