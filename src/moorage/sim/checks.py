"""Invariants of a simulation, checked from outside: the cluster is the truth.

    after each step   a bound pod stays on its node; a scheduler requests a binding only if, as far
                      as it could know, the pod is pending, has no binding in progress, and has room
                      there; every pending pod that it observed is in exactly one queue or state
    when finished     the scheduler's cache equals the cluster; no pod is assumed; no pod is pending
                      that a new scheduler would place, or preempt others for
    devices           see `device_checks`
    when quiet        the same for unschedulable pods, where queueing hints are complete

Two leaders can overcommit a node, because the API server does not count and neither knows the
requests of the other. That is excused, as is a node that shrank, or that others filled, while the
observation was in transit.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from typing import NoReturn

from moorage.api.config import KubeSchedulerProfile, SchedulerConfiguration
from moorage.api.kinds import KINDS
from moorage.api.meta import Condition
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.server_requests import (
    BindPod,
    CreateResourceClaim,
    DeletePod,
    PatchClaim,
    PatchPodStatus,
    PatchVolume,
    Request,
    ReserveResourceClaim,
)
from moorage.core.effects import Effect, Outcome, Ticket
from moorage.core.observations import Added, Deleted, Listed, Observation, Updated
from moorage.core.scheduler import Scheduler
from moorage.errors import InvariantError
from moorage.sim.clock import Clock
from moorage.sim.cluster import MemoryCluster
from moorage.sim.device_checks import DeviceChecks
from moorage.sim.history import ContractViolation, HistoryChecker, shortage
from moorage.sim.replica import Replica, SchedulerFactory

QUEUES = ("active", "backoff", "unschedulable", "gated")
FIT = "NodeResourcesFit"
# Plugins with hints that cover every event that may help.
COMPLETE_HINTS = frozenset(
    (
        *(FIT, "NodeAffinity", "NodeName", "NodePorts", "NodeUnschedulable"),
        *("DynamicResources", "SchedulingGates", "TaintToleration", "VolumeBinding"),
    )
)

# Nominated pods that are not tried again soon, by node.
NominatedByNode = dict[str, list[Pod]]
NONE_NOMINATED: NominatedByNode = {}


class InvariantChecks:
    """Raises InvariantError with the history of the pod that it is about."""

    def __init__(
        self,
        cluster: MemoryCluster,
        clock: Clock[object],
        config: SchedulerConfiguration,
        make_scheduler: SchedulerFactory,
        seed: int,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._make_scheduler = make_scheduler
        self._seed = seed
        self._ours = {profile.scheduler_name for profile in config.profiles}
        self._checks_room = all(_checks_room(profile) for profile in config.profiles)
        self._replicas: list[Replica] = []
        self._histories: list[HistoryChecker] = []
        self._node_of: dict[str, str] = {}
        self._devices = DeviceChecks(cluster)
        cluster.watch(self._changed)

    def start(self, replica: Replica) -> None:
        """A scheduler starts."""
        self._replicas.append(replica)
        self._histories.append(HistoryChecker())

    def observed(self, replica: Replica, observation: Observation) -> None:
        """A scheduler observed something."""
        self._histories[replica.number].observe(observation)

    def requested(
        self, replica: Replica, effects: list[Effect], decided: Callable[[str], bool]
    ) -> None:
        """A scheduler returned effects; `decided` says which pods were decided in this call."""
        history = self._histories[replica.number]
        try:
            history.check_effects(effects, decided, checks_room=self._checks_room)
        except ContractViolation as violation:
            self._fail(violation.uid, f"scheduler {replica.number} {violation.text}")
        self._check_states(replica, history)
        try:
            replica.scheduler.check_invariants()
        except InvariantError as error:
            raise InvariantError(f"{error}\n{self._where()}") from error

    def completed(self, replica: Replica, ticket: Ticket, outcome: Outcome) -> None:
        """A scheduler received the outcome of a request."""
        self._histories[replica.number].complete(ticket, outcome)

    def bound(self, replica: Replica, ticket: Ticket, request: BindPod) -> None:
        """The API server performed a binding."""
        pod = self._cluster.get(Pod, request.pod.key)
        node = self._cluster.get(Node, request.node)
        if pod is None or node is None or not self._checks_room:
            return
        there = [other for other in self._cluster.active(Pod) if other.node_name == node.name]
        problem = shortage(pod, node, there)
        if problem and not self._histories[replica.number].excuses(ticket, node, there):
            self._fail(pod.uid, f"{pod.key} was bound to {node.name} beyond its room: {problem}")

    def reserved(self, replica: Replica, request: ReserveResourceClaim) -> None:
        """The API server performed the reservation of a device claim."""
        if violation := self._devices.reserved(replica.number, request):
            self._fail(*violation)

    def when_finished(self, replica: Replica) -> None:
        """Nothing is left to do, and there are no faults."""
        self._check_cache(replica)
        for violation in self._devices.when_finished():
            self._fail(*violation)
        if replica.scheduler.cluster.waiting:
            return  # Pods that wait on permit stay assumed for as long as their plugins say.
        for cached in replica.scheduler.cache:
            if cached.assumed:
                self._fail(cached.pod.uid, f"room is held on {cached.node} for {cached.pod.key}")
        for assumption in replica.scheduler.cluster.assumed:
            what = f"{type(assumption.obj).__name__} {assumption.obj.key}"
            self._fail(assumption.holder, f"{what} is still seen as it was to be")
        # A nominated pod that is gated by now, because its claim was deleted, keeps its room as in
        # Kubernetes; a new scheduler does not know of the nomination.
        keeps_room = any(
            pod.status.nominated_node_name and replica.scheduler.queue.where(pod.key) == "gated"
            for pod in self._cluster.active(Pod)
            if not pod.node_name
        )
        self._check_with_new_scheduler(excused=set() if keeps_room else None)

    def when_quiet(self, replica: Replica) -> None:
        """Only unschedulable pods are left, which are retried after a long time.

        A pod that a new scheduler would place should have been requeued, if the hints of the
        plugins that rejected it are complete.
        """
        unschedulable = replica.unschedulable_pods()
        gaps = [each for each in unschedulable if not each.unschedulable_plugins <= COMPLETE_HINTS]
        # Such a pod keeps the room on its nominated node until it is tried again, as in Kubernetes.
        # A new scheduler tries it at once, and clears the nomination if it still does not fit.
        kept: NominatedByNode = {}
        for each in gaps:
            node = replica.scheduler.nominator.node_for(each.pod)
            kept.setdefault(node, []).append(each.pod)
        if len(gaps) < len(unschedulable):
            self._check_with_new_scheduler(excused={each.uid for each in gaps}, kept=kept)

    def _changed(self, observation: Observation) -> None:
        match observation:
            case Added(obj=Pod() as pod) | Updated(obj=Pod() as pod):
                before = self._node_of.setdefault(pod.uid, pod.node_name) or pod.node_name
                self._node_of[pod.uid] = before
                if pod.node_name != before:
                    self._fail(pod.uid, f"{pod.key} moved from {before} to {pod.node_name!r}")
            case Deleted(obj=Pod() as pod):
                self._node_of.pop(pod.uid, None)

    def _check_states(self, replica: Replica, history: HistoryChecker) -> None:
        """Every pending pod, and no other, is in exactly one queue or state."""
        scheduler = replica.scheduler
        dump = scheduler.queue.dump()
        queued: dict[str, list[str]] = {}
        for queue in QUEUES:
            for entry in dump[queue]:
                queued.setdefault(entry.uid, []).append(queue)
        in_flight = {entry.uid for entry in dump["in_flight"]}
        for pod in history.state.pods.values():
            places = queued.pop(pod.uid, [])
            if scheduler.cache.is_assumed(pod.uid):
                places.append("assumed")
            elif pod.uid in in_flight and not pod.node_name:
                # With a node it may still wait on permit, if another scheduler bound it.
                places.append("in flight")
            waits = not pod.node_name and pod.spec.scheduler_name in self._ours
            if len(places) != waits and not pod.is_terminating:
                found = " and ".join(places) or "nowhere"
                self._fail(pod.uid, f"{pod.key} is {found} in scheduler {replica.number}")
        for uid, places in queued.items():
            self._fail(uid, f"a pod that is gone is {' and '.join(places)}")

    def _check_cache(self, replica: Replica) -> None:
        """All observations have arrived, so the cache equals the cluster."""
        truth = {pod.uid: pod.node_name for pod in self._cluster.active(Pod)}
        observed = {p.uid: p.node_name for p in self._histories[replica.number].state.pods.values()}
        on_nodes = {c.pod.uid: c.node for c in replica.scheduler.cache if not c.assumed}
        for uid in sorted(truth.keys() | observed.keys() | on_nodes.keys()):
            is_there, said, believed = truth.get(uid), observed.get(uid), on_nodes.get(uid, "")
            if is_there != said or (is_there or "") != believed:
                what = f"is on {is_there!r}, the news said {said!r}, the cache has {believed!r}"
                self._fail(uid, f"pod {uid} {what}")

    def _check_with_new_scheduler(
        self, excused: Set[str] | None = None, kept: NominatedByNode = NONE_NOMINATED
    ) -> None:
        """No pod is pending that a new scheduler would place, or preempt others for.

        With excused pods, preemption is not checked; nor is a pod that nominated ones keep out.
        """
        scheduler = self._make_scheduler(seed=self._seed)
        now = self._clock.now
        for kind in KINDS.values():
            scheduler.observe(Listed(kind.struct, self._cluster.active(kind.struct)), now)
        for _ in range(self._cluster.count(Pod)):
            for effect in scheduler.schedule_one(now):
                request = effect.request
                node = _placed_on(request, scheduler)
                if node and request.pod.uid not in (excused or ()):
                    if not self._is_kept_out(request.pod.key, node, kept.get(node, ())):
                        self._fail(request.pod.uid, f"{request.pod.key} waits, and fits {node}")
                elif excused is None and _evicts(request):
                    self._fail(request.pod.uid, f"{request.pod.key} has not made room for others")

    def _is_kept_out(self, key: str, name: str, nominated: Sequence[Pod]) -> bool:
        """Whether a node has no room for a pod beside nominated ones of at least its priority."""
        pod, node = self._cluster.get(Pod, key), self._cluster.get(Node, name)
        if pod is None or node is None:
            return False
        keeping = [other for other in nominated if other.priority >= pod.priority]
        there = [other for other in self._cluster.active(Pod) if other.node_name == name]
        return bool(keeping and shortage(pod, node, [*there, *keeping]))

    def _fail(self, uid: str, text: str) -> NoReturn:
        raise InvariantError("\n".join((text, self._where(), *self._history(uid))))

    def _where(self) -> str:
        return f"seed {self._seed}, at {self._clock.now} s"

    def _history(self, uid: str) -> Iterable[str]:
        for replica in self._replicas:
            yield f"as scheduler {replica.number} tells it:"
            yield from (f"  {fact}" for fact in replica.scheduler.journal.story(uid))


def _placed_on(request: Request, scheduler: Scheduler) -> str:
    """The node that a request binds a pod, its volumes or devices to; empty for others."""
    if isinstance(request, BindPod):
        return request.node
    cached = scheduler.cache.get(request.pod.uid)
    first_steps = PatchVolume | PatchClaim | ReserveResourceClaim | CreateResourceClaim
    is_first_step = isinstance(request, first_steps)
    return cached.node if cached is not None and is_first_step else ""


def _evicts(request: Request) -> bool:
    """Whether a request evicts a victim, or sets its condition before."""
    match request:
        case PatchPodStatus(condition=Condition(type="DisruptionTarget")):
            return True
    return isinstance(request, DeletePod)


def _checks_room(profile: KubeSchedulerProfile) -> bool:
    """Whether the filters of a profile prevent overcommitted nodes."""
    off = {plugin.name for plugin in profile.plugins.filter.disabled}
    return FIT in profile.plugins.names() and not off & {FIT, "*"}
