"""Play: performs a plan on a simulation, everything at its time.

Pods of a stream are created from a template that is completed once. They are deleted when their
lifetime is over; a pod that is evicted or lost before is created again under another name, and its
lifetime begins again. A pod that a quota refuses is created when less is used, as the controller of
a workload would do.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from random import Random
from typing import assert_never

from msgspec.structs import replace

from moorage.api import config as configuration
from moorage.api.devices import DeviceClass
from moorage.api.meta import KubeObject, ObjectMeta
from moorage.api.node import Node, NodePool
from moorage.api.pod import Pod, PodSchedulingGroup
from moorage.api.pod_groups import (
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
)
from moorage.api.policy import ResourceQuota
from moorage.cluster.status_errors import ForbiddenError
from moorage.controllers import drivers
from moorage.core.observations import Deleted, Observation, Updated
from moorage.errors import InputError
from moorage.expansion.pools import pool_objects
from moorage.expansion.refusals import Refusal
from moorage.expansion.templates import NameGenerator
from moorage.scenarios.maintenance import NodeMaintenance
from moorage.scenarios.plan import (
    AddNodes,
    ApplyObjects,
    Arrival,
    ArrivalStream,
    CreateObjects,
    DrainNodes,
    FailNodes,
    PlannedEvent,
    ScenarioPlan,
)
from moorage.scenarios.wire import DeleteAction, ScaleAction
from moorage.sim.run import Simulation

OnProgress = Callable[[int, int], None]

PROGRESS_STEPS = 200


def _may_admit(observation: Observation) -> bool:
    """Whether a change may make room in a quota."""
    match observation:
        case Deleted(obj=Pod() | ResourceQuota()) | Updated(obj=ResourceQuota()):
            return True
        case Updated(obj=Pod() as pod):
            return pod.is_terminal
    return False


class Play:
    """One run of a plan; `objects` exist at the start, in addition to the plan's own."""

    def __init__(
        self,
        plan: ScenarioPlan,
        objects: Iterable[KubeObject] = (),
        config: configuration.Source = None,
        seed: int | None = None,
        *,
        trace: bool = False,
    ) -> None:
        self.plan = plan
        self.seed = plan.seed if seed is None else seed
        self.simulation = Simulation([*objects, *plan.objects], config, self.seed, trace=trace)
        self.simulation.sample_every(plan.interval)
        self._cluster = self.simulation.cluster
        self._maintenance = NodeMaintenance(self.simulation, Random(f"{self.seed}/events"))
        self._names = NameGenerator()
        self._alive: dict[str, tuple[str, Arrival]] = {}
        self._started: set[str] = set()
        self._used: set[str] = set()
        # How many members of each gang have not ended, and which of them have started.
        self._gangs: dict[str, int] = {}
        self._ready: dict[str, dict[str, str]] = {}
        self._completed: dict[int, Pod] = {}
        # Arrivals that quotas refuse, by namespace and stream, and why.
        self._refused: dict[tuple[str, str], deque[Arrival]] = {}
        self._reasons: dict[tuple[str, str], str] = {}
        self._is_retrying = False
        self.simulation.report_refusals(self._refusals)
        self._check()
        self._cluster.watch(self._changed)
        for event in plan.events:
            if event.at <= plan.duration:
                self.simulation.at(event.at, partial(self._act, event))
        self._arrivals: Iterator[tuple[str, Arrival]] = plan.arrivals(self.seed)
        self._next = next(self._arrivals, None)
        self._schedule_next()

    def run(self, on_progress: OnProgress | None = None) -> Simulation:
        """Run to the end of the plan."""
        for step in range(1, PROGRESS_STEPS + 1):
            self.simulation.run(until=self.plan.duration * step / PROGRESS_STEPS)
            if on_progress is not None:
                on_progress(step, PROGRESS_STEPS)
        return self.simulation

    def _check(self) -> None:
        """Refuse what is known to fail before the first step, rather than after an hour."""
        for stream in self.plan.streams:
            if isinstance(stream, ArrivalStream):
                self._complete(stream.pod)
        growing = (AddNodes, CreateObjects)
        if any(isinstance(event.action, growing) for event in self.plan.events):
            return  # The nodes are not known yet.
        if not self._cluster.count(Node):
            raise InputError(
                f"{self.plan.name}: the cluster has no nodes; add Node or NodePool documents to "
                "the scenario, or name their file with -f"
            )
        for event in self.plan.events:
            if isinstance(event.action, DrainNodes | FailNodes):
                self._maintenance.check_names(event.path, event.action)

    # Pods

    def _schedule_next(self) -> None:
        if self._next is not None and self._next[1].at <= self.plan.duration:
            self.simulation.at(self._next[1].at, self._arrive)

    def _arrive(self) -> None:
        """Create all pods that are due."""
        now = self.simulation.now
        while self._next is not None and self._next[1].at <= now:
            self._create(*self._next)
            self._next = next(self._arrivals, None)
        self._schedule_next()

    def _create(self, stream: str, arrival: Arrival) -> None:
        if why := self._try_to_create(stream, arrival):
            key = (arrival.pod.namespace or "default", stream)
            self._refused.setdefault(key, deque()).append(arrival)
            self._reasons[key] = why

    def _retry(self) -> None:
        """Create refused pods, the oldest of each stream first, until one is refused again."""
        self._is_retrying = False
        for key, waiting in list(self._refused.items()):
            while waiting and not (why := self._try_to_create(key[1], waiting[0])):
                waiting.popleft()
            if waiting:
                self._reasons[key] = why
            else:
                del self._refused[key]

    def _refusals(self) -> Iterator[Refusal]:
        for (namespace, stream), waiting in self._refused.items():
            reason = self._reasons[namespace, stream]
            yield Refusal("stream", namespace, stream, len(waiting), reason)

    def _try_to_create(self, stream: str, arrival: Arrival) -> str:
        """Create a pod; returns why it is refused, if it is."""
        pod = self._complete(arrival.pod)
        name = arrival.name
        if not name or name in self._used:  # A pod that is created again needs another name.
            name = self._names.fresh(stream, f"{name or stream}-")
        meta, spec = replace(pod.metadata, name=name), pod.spec
        if arrival.gang:
            self._create_group(pod.namespace, arrival)
            spec = replace(spec, scheduling_group=PodSchedulingGroup(pod_group_name=arrival.gang))
        pod = replace(pod, metadata=meta, spec=spec)
        try:
            made = self._cluster.create(pod, self.simulation.now)
        except ForbiddenError as error:
            return str(error)
        self._used.add(name)
        self._alive[made.uid] = (stream, arrival)
        return ""

    def _create_group(self, namespace: str, arrival: Arrival) -> None:
        """Create the PodGroup of a gang, unless an earlier member has."""
        if self._cluster.get(PodGroup, f"{namespace}/{arrival.gang}") is None:
            self._gangs[arrival.gang] = arrival.gang_size
            gang = GangSchedulingPolicy(min_count=arrival.gang_size)
            group = PodGroup(
                metadata=ObjectMeta(name=arrival.gang, namespace=namespace),
                spec=PodGroupSpec(scheduling_policy=PodGroupSchedulingPolicy(gang=gang)),
            )
            [completed] = self.simulation.complete([group])
            self._cluster.create(completed, self.simulation.now)

    def _complete(self, pod: Pod) -> Pod:
        """The template as an API server would store it; once for all pods that share it."""
        found = self._completed.get(id(pod))
        if found is None:
            [completed] = self.simulation.complete([pod])
            assert isinstance(completed, Pod)
            found = replace(completed, metadata=replace(completed.metadata, uid=""))
            self._completed[id(pod)] = found
        return found

    def _changed(self, observation: Observation) -> None:
        if self._refused and not self._is_retrying and _may_admit(observation):
            self._is_retrying = True
            self.simulation.at(self.simulation.now, self._retry)
        match observation:
            case Updated(obj=Pod() as pod):
                if pod.status.phase == "Running" and pod.uid in self._alive:
                    self._start(pod)
            case Deleted(obj=Pod() as pod) if pod.uid in self._alive:
                self._started.discard(pod.uid)
                stream, arrival = self._alive.pop(pod.uid)
                self._ready.get(arrival.gang, {}).pop(pod.uid, None)
                if arrival.replace:
                    again = partial(self._create, stream, arrival)
                    self.simulation.at(self.simulation.now, again)

    def _start(self, pod: Pod) -> None:
        """Begin the lifetime of a pod; that of a gang begins when all members run."""
        arrival = self._alive[pod.uid][1]
        ready = {pod.uid: pod.key}
        if arrival.gang:
            ready = self._ready.setdefault(arrival.gang, {})
            ready[pod.uid] = pod.key
            if len(ready) < arrival.gang_size:
                return
        for uid, key in ready.items():
            # Others have ended already if this one was evicted and created again.
            seconds = self._alive[uid][1].seconds if uid in self._alive else None
            if seconds is not None and uid not in self._started:
                self._started.add(uid)
                self.simulation.at(self.simulation.now + seconds, partial(self._end, key, uid))

    def _end(self, key: str, uid: str) -> None:
        """Delete a pod whose lifetime is over."""
        if uid not in self._alive:
            return
        _, arrival = self._alive.pop(uid)
        self._started.discard(uid)
        self._cluster.remove(self._cluster.existing(Pod, key, uid))
        if arrival.gang:
            self._gangs[arrival.gang] -= 1
            if not self._gangs[arrival.gang]:
                del self._ready[arrival.gang]
                group = f"{key.partition('/')[0]}/{arrival.gang}"
                self._cluster.delete(PodGroup, group, self.simulation.now)

    # Events

    def _act(self, event: PlannedEvent) -> None:
        action = event.action
        try:
            match action:
                case DrainNodes():
                    self._maintenance.drain(event.path, action)
                case FailNodes():
                    self._maintenance.fail(event.path, action)
                case AddNodes(pool=pool):
                    nodes = pool_objects(pool, first=self._first(pool.name))
                    self.simulation.create([*nodes, *self._new_classes(pool)])
                case ScaleAction(kind=kind, namespace=namespace, name=name, replicas=replicas):
                    self.simulation.scale(kind, namespace, name, replicas)
                case CreateObjects(objects=objects):
                    self.simulation.create(objects)
                case ApplyObjects(objects=objects):
                    for obj in objects:
                        self.simulation.apply(obj)
                case DeleteAction(kind=kind, namespace=namespace, name=name):
                    self.simulation.delete(kind, namespace, name)
                case _:
                    assert_never(action)
        except InputError as error:
            text = str(error)
            raise InputError(
                text if text.startswith(event.path) else f"{event.path}: {text}"
            ) from None

    def _new_classes(self, pool: NodePool) -> list[DeviceClass]:
        """The device classes that a pool names and that do not exist."""
        named = drivers.classes(pool.spec.devices)
        return [each for each in named if self._cluster.get(DeviceClass, each.name) is None]

    def _first(self, pool: str) -> int:
        """The number after the last node of a pool."""
        numbers = (
            node.name.removeprefix(f"{pool}-")
            for node in self._cluster.all(Node)
            if node.name.startswith(f"{pool}-")
        )
        return 1 + max((int(number) for number in numbers if number.isdecimal()), default=-1)
