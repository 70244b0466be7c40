"""What must hold after every step, seen from outside: the cluster is the truth.

    always     a pod that is on a node stays there; a scheduler asks to bind a pod only if, as far
               as it could know, the pod waits, was not asked for already, and has room there;
               every waiting pod that it was told of is in one place
    at rest    what a scheduler believes is what is; it holds no room for anybody; and nobody
               waits whom a scheduler that starts afresh would place, or evict others for
    at ease    the same for pods that rest, as far as the hints that should wake them have no gaps

Two leaders can fill a node twice, because no API server counts: neither can know what the other
has sent off. That much is excused, and so is a node that shrank, or was filled by others, while
the news was on its way. A scheduler is judged by what it was told and by what it did itself.
"""

from collections.abc import Callable, Iterable, Set
from typing import NoReturn

from moorage.api.config import KubeSchedulerProfile, SchedulerConfiguration
from moorage.api.kinds import KINDS
from moorage.api.meta import Condition
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core.effects import Effect, Outcome, Ticket
from moorage.core.observations import Added, Deleted, Listed, Observation, Updated
from moorage.core.scheduler import Scheduler
from moorage.errors import InvariantError
from moorage.framework.effects import (
    BindPod,
    DeletePod,
    PatchClaim,
    PatchPodStatus,
    PatchVolume,
    Request,
)
from moorage.sim.clock import Clock
from moorage.sim.cluster import Cluster
from moorage.sim.replica import MakeScheduler, Replica
from moorage.sim.witness import Complaint, Witness, no_room

QUEUES = ("active", "backoff", "unschedulable", "gated")
FIT = "NodeResourcesFit"
# Plugins that look at one node at a time, whose hints tell for certain when a refusal may be cured.
SURE_HINTS = frozenset(
    (FIT, "NodeAffinity", "NodePorts", "NodeUnschedulable", "SchedulingGates", "TaintToleration")
)


class Checks:
    """Looks on, and raises InvariantError with the story of the pod that it is about."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock[object],
        config: SchedulerConfiguration,
        make_scheduler: MakeScheduler,
        seed: int,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._make_scheduler = make_scheduler
        self._seed = seed
        self._ours = {profile.scheduler_name for profile in config.profiles}
        self._counts_room = all(_counts_room(profile) for profile in config.profiles)
        self._replicas: list[Replica] = []
        self._witnesses: list[Witness] = []
        self._node_of: dict[str, str] = {}
        cluster.watch(self._changed)

    def start(self, replica: Replica) -> None:
        """A scheduler starts."""
        self._replicas.append(replica)
        self._witnesses.append(Witness())

    def told(self, replica: Replica, observation: Observation) -> None:
        """A scheduler was told something."""
        self._witnesses[replica.number].hears(observation)

    def asked(
        self, replica: Replica, effects: list[Effect], decided: Callable[[str], bool]
    ) -> None:
        """A scheduler asked for something, perhaps because it has just decided on a pod."""
        witness = self._witnesses[replica.number]
        try:
            witness.asks(effects, decided, counts_room=self._counts_room)
        except Complaint as complaint:
            self._fail(complaint.uid, f"scheduler {replica.number} {complaint.text}")
        self._check_places(replica, witness)
        try:
            replica.scheduler.check_invariants()
        except InvariantError as error:
            raise InvariantError(f"{error}\n{self._where()}") from error

    def answered(self, replica: Replica, ticket: Ticket, outcome: Outcome) -> None:
        """A scheduler learned what became of something."""
        self._witnesses[replica.number].is_answered(ticket, outcome)

    def bound(self, replica: Replica, ticket: Ticket, request: BindPod) -> None:
        """The API server carried out a binding."""
        pod = self._cluster.get(Pod, request.pod.key)
        node = self._cluster.get(Node, request.node)
        if pod is None or node is None or not self._counts_room:
            return
        there = [other for other in self._cluster.active(Pod) if other.node_name == node.name]
        problem = no_room(pod, node, there)
        if problem and not self._witnesses[replica.number].explains(ticket, node, there):
            self._fail(pod.uid, f"{pod.key} was bound to {node.name} beyond its room: {problem}")

    def at_rest(self, replica: Replica) -> None:
        """Nothing is left to do, and the world behaves."""
        self._check_beliefs(replica)
        if replica.scheduler.cluster.waiting:
            return  # Pods that wait on permit hold room for as long as their plugins say.
        for cached in replica.scheduler.cache:
            if cached.assumed:
                self._fail(cached.pod.uid, f"room is held on {cached.node} for {cached.pod.key}")
        for assumption in replica.scheduler.cluster.assumed:
            what = f"{type(assumption.obj).__name__} {assumption.obj.key}"
            self._fail(assumption.holder, f"{what} is still seen as it was to be")
        self._check_fresh_eyes()

    def at_ease(self, replica: Replica) -> None:
        """Pods only rest, until they are tried again by and by.

        Those whom a scheduler that starts afresh would place should have been woken, if the hints
        of the plugins that refused them have no gaps.
        """
        resting = replica.resting()
        gaps = {pod.uid for pod in resting if not pod.unschedulable_plugins <= SURE_HINTS}
        if len(gaps) < len(resting):
            self._check_fresh_eyes(excused=gaps)

    def _changed(self, observation: Observation) -> None:
        match observation:
            case Added(obj=Pod() as pod) | Updated(obj=Pod() as pod):
                before = self._node_of.setdefault(pod.uid, pod.node_name) or pod.node_name
                self._node_of[pod.uid] = before
                if pod.node_name != before:
                    self._fail(pod.uid, f"{pod.key} moved from {before} to {pod.node_name!r}")
            case Deleted(obj=Pod() as pod):
                self._node_of.pop(pod.uid, None)

    def _check_places(self, replica: Replica, witness: Witness) -> None:
        """Every pod that waits, and only those, is in one place."""
        scheduler = replica.scheduler
        dump = scheduler.queue.dump()
        queued: dict[str, list[str]] = {}
        for queue in QUEUES:
            for entry in dump[queue]:
                queued.setdefault(entry.uid, []).append(queue)
        in_flight = {entry.uid for entry in dump["in_flight"]}
        for pod in witness.told.pods.values():
            places = queued.pop(pod.uid, [])
            if scheduler.cache.is_assumed(pod.uid):
                places.append("assumed")
            elif pod.uid in in_flight and not pod.node_name:
                # With a node it may still wait on permit, if somebody else was quicker.
                places.append("in flight")
            waits = not pod.node_name and pod.spec.scheduler_name in self._ours
            if len(places) != waits and not pod.is_terminating:
                found = " and ".join(places) or "nowhere"
                self._fail(pod.uid, f"{pod.key} is {found} in scheduler {replica.number}")
        for uid, places in queued.items():
            self._fail(uid, f"a pod that is gone is {' and '.join(places)}")

    def _check_beliefs(self, replica: Replica) -> None:
        """The news has arrived, so what is believed is what is."""
        truth = {pod.uid: pod.node_name for pod in self._cluster.active(Pod)}
        told = {p.uid: p.node_name for p in self._witnesses[replica.number].told.pods.values()}
        on_nodes = {c.pod.uid: c.node for c in replica.scheduler.cache if not c.assumed}
        for uid in sorted(truth.keys() | told.keys() | on_nodes.keys()):
            is_there, said, believed = truth.get(uid), told.get(uid), on_nodes.get(uid, "")
            if is_there != said or (is_there or "") != believed:
                what = f"is on {is_there!r}, the news said {said!r}, the cache has {believed!r}"
                self._fail(uid, f"pod {uid} {what}")

    def _check_fresh_eyes(self, excused: Set[str] | None = None) -> None:
        """Nobody waits whom a scheduler that starts afresh would place, or evict others for.

        With pods to be excused it is too early to speak of evictions.
        """
        scheduler = self._make_scheduler(self._seed)
        now = self._clock.now
        for kind in KINDS.values():
            scheduler.observe(Listed(kind.struct, self._cluster.active(kind.struct)), now)
        for _ in range(self._cluster.count(Pod)):
            for effect in scheduler.schedule_one(now):
                request = effect.request
                node = _placed_on(request, scheduler)
                if node and request.pod.uid not in (excused or ()):
                    self._fail(request.pod.uid, f"{request.pod.key} waits, and fits {node}")
                elif excused is None and _evicts(request):
                    self._fail(request.pod.uid, f"{request.pod.key} has not made room for others")

    def _fail(self, uid: str, text: str) -> NoReturn:
        raise InvariantError("\n".join((text, self._where(), *self._story(uid))))

    def _where(self) -> str:
        return f"seed {self._seed}, at {self._clock.now} s"

    def _story(self, uid: str) -> Iterable[str]:
        for replica in self._replicas:
            yield f"as scheduler {replica.number} tells it:"
            yield from (f"  {fact}" for fact in replica.scheduler.journal.story(uid))


def _placed_on(request: Request, scheduler: Scheduler) -> str:
    """The node that a pod is on its way to; its volumes may have to be there first."""
    if isinstance(request, BindPod):
        return request.node
    cached = scheduler.cache.get(request.pod.uid)
    is_first_step = isinstance(request, PatchVolume | PatchClaim)
    return cached.node if cached is not None and is_first_step else ""


def _evicts(request: Request) -> bool:
    """Whether a victim of preemption is asked to leave, or marked before it is."""
    match request:
        case PatchPodStatus(condition=Condition(type="DisruptionTarget")):
            return True
    return isinstance(request, DeletePod)


def _counts_room(profile: KubeSchedulerProfile) -> bool:
    """Whether a profile's filters keep nodes from being overfilled at all."""
    off = {plugin.name for plugin in profile.plugins.filter.disabled}
    return FIT in profile.plugins.names() and not off & {FIT, "*"}
