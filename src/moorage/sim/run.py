"""Simulation: a cluster in memory and a scheduler, on virtual time.

    sim = Simulation(objects)
    sim.run()
    sim.placements    {"default/web-0": "node-17", "default/web-1": None}
    sim.pending       {"default/web-1": "0/5 nodes are available: ..."}

The loop is that of every shell: observations, outcomes, deadlines, one pod. When nothing is left
to do at this instant, time advances. How a decision is made is not known here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, get_args

from msgspec import Struct, convert

from moorage.api import config as configuration
from moorage.api import defaults, manifests
from moorage.api.kinds import KINDS
from moorage.api.meta import Condition, KubeObject
from moorage.api.pod import Pod
from moorage.api.policy import LimitRange, PriorityClass, ResourceQuota, RuntimeClass
from moorage.api.server_requests import EmitEvent
from moorage.api.storage import StorageClass
from moorage.cluster import status_errors
from moorage.cluster.objects import validation
from moorage.cluster.status_errors import NotFoundError
from moorage.cluster.verbs import admission, delete, eviction
from moorage.core.extenders import ExtenderClient
from moorage.core.journal import Journal
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError
from moorage.expansion import documents
from moorage.expansion.refusals import Refusal
from moorage.framework.invoke import CallMeter
from moorage.framework.registry import Registry
from moorage.sim import device_claims, drivers, kubelet, outcomes, replicas, volumes
from moorage.sim.checks import InvariantChecks
from moorage.sim.clock import Clock
from moorage.sim.cluster import KIND_OF, RESOURCE_OF, MemoryCluster
from moorage.sim.controllers import Controllers
from moorage.sim.device_claims import ClaimController
from moorage.sim.drivers import DeviceDrivers
from moorage.sim.faults import FaultPlan, Faults
from moorage.sim.kubelet import Kubelet
from moorage.sim.outcomes import PodEviction
from moorage.sim.quiescence import Quiescence
from moorage.sim.replicas import Replicas
from moorage.sim.results import html, result, tables
from moorage.sim.results.recorder import Recorder
from moorage.sim.results.result import Disruption, Result
from moorage.sim.trace import Trace
from moorage.sim.volumes import VolumeController

Manifest = Mapping[str, Any] | KubeObject
Progress = Callable[[int, int], None]
Act = Callable[[], object]

CYCLES_PER_PROGRESS = 100
REPLICA_ACTIONS = frozenset(get_args(replicas.Action))
DISRUPTION_TARGET = convert(eviction.DISRUPTION_TARGET, Condition)

_ORDER = {kind.struct: index for index, kind in enumerate(KINDS.values())}


class ScheduledCall(Struct, frozen=True):
    """A call from outside at a given time, for example by a scenario."""

    act: Act


class Simulation:
    """A cluster and its scheduler; virtual time starts at 0.

    `objects` are dicts, as JSON or YAML would give them, or structs of `moorage.api`, or what
    `manifests.load` read; `config` is a KubeSchedulerConfiguration as a dict or a path. `faults`
    injects faults, `check` checks all invariants after every step, `trace` records every call of
    the scheduler. `on_progress(done, total)` is called repeatedly during `run`. `extenders` are
    called like HTTP extenders; those that the configuration names are not called.
    """

    def __init__(
        self,
        objects: Iterable[Manifest] | manifests.Manifest,
        config: configuration.Source = None,
        seed: int = 0,
        *,
        faults: Faults | None = None,
        check: bool = False,
        trace: bool = False,
        start_seconds: float = 1.0,
        on_progress: Progress | None = None,
        extenders: Sequence[ExtenderClient] = (),
    ) -> None:
        self.config = configuration.load(config)
        self.cluster = MemoryCluster()
        self.trace = Trace() if trace else None
        self._clock: Clock[object] = Clock()
        self._kubelet = Kubelet(self.cluster, self._clock, start_seconds=start_seconds)
        self._fault_plan = FaultPlan(seed, faults or Faults())
        self._volumes = VolumeController(self.cluster, self._clock, self._fault_plan)
        self._claims = ClaimController(self.cluster, self._clock)
        self._drivers = DeviceDrivers(self.cluster, self._clock, self._fault_plan)
        make_scheduler = partial(Scheduler, self.config, registry=Registry(), extenders=extenders)
        self._checks = (
            InvariantChecks(self.cluster, self._clock, self.config, make_scheduler, seed)
            if check
            else None
        )
        self._on_progress = on_progress
        self._other_refusals: Callable[[], Iterable[Refusal]] = tuple
        self._recorder = Recorder(self.cluster, self._clock, self._depths)
        self._controllers = Controllers(self.cluster, self._clock)
        self._create(objects)
        self._replicas = Replicas(
            self.cluster,
            self._clock,
            make_scheduler,
            seed,
            self._fault_plan,
            self.trace,
            self._checks,
        )
        self._quiescence = Quiescence(
            self._clock,
            self._kubelet,
            self._replicas,
            self._controllers,
            self._fault_plan,
            self.config.pod_max_backoff_seconds,
        )

    def measure(self, meter: CallMeter) -> None:
        """Report what the scheduler does to a meter from now on."""
        self._replicas.leader.measure(meter)

    # Changes of the cluster

    def create(self, objects: Iterable[Manifest]) -> None:
        """Add objects, at this moment."""
        objects = list(objects)
        for new in manifests.from_dicts(filter(_is_priority_class, objects)):
            self._check_default(new)
        created = self._create(objects)
        self._quiescence.changed(may_help_pods=any(not isinstance(obj, Pod) for obj in created))

    def update(self, obj: Manifest) -> None:
        """Replace an object by a newer version of it."""
        for new in manifests.read([obj]).everything:
            if self._controllers.host.replace(new):
                continue
            if type(new) not in KIND_OF:
                raise status_errors.not_found(RESOURCE_OF[type(new)], new.name)
            self._check_default(new)
            (completed,) = defaults.complete([self.cluster.merged(new)], known=self._classes())
            old = self.cluster.existing(type(completed), completed.key)
            _check_update(old, completed)
            if why := self._controllers.host.quotas.update_refusal(old, completed):
                raise status_errors.forbidden(RESOURCE_OF[type(completed)], completed.name, why)
            self.cluster.update(_checked(completed))
        self._quiescence.changed(may_help_pods=True)

    def apply(self, obj: Manifest) -> None:
        """Replace an object by a newer version of it, or create it, as `kubectl apply` does."""
        try:
            self.update(obj)
        except NotFoundError:
            self.create([obj])

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object; the namespace of a cluster-scoped one is not looked at."""
        if not self._controllers.host.remove(kind, namespace, name):
            struct, key = _struct_and_key(kind, namespace, name)
            delete.check_deletable(RESOURCE_OF[struct], name)
            self.cluster.delete(struct, key, self.now)
        self._quiescence.changed(may_help_pods=True)

    def evict(self, namespace: str, name: str) -> None:
        """Delete a pod as `kubectl drain` does; refused if its disruption budget is spent."""
        pod = self.cluster.existing(Pod, f"{namespace or 'default'}/{name}")
        self._controllers.host.charge_eviction(pod)
        if pod.node_name:
            self.cluster.patch_status(pod.key, pod.uid, self.now, condition=DISRUPTION_TARGET)
        self.cluster.delete(Pod, pod.key, self.now)
        self._quiescence.changed(may_help_pods=True)

    def scale(self, kind: str, namespace: str, name: str, replicas: int) -> None:
        """Change how many pods a workload has: a Deployment, ReplicaSet or StatefulSet."""
        self._controllers.host.scale(kind, namespace, name, replicas)
        self._quiescence.changed(may_help_pods=True)

    def at(self, seconds: float, act: Act) -> None:
        """Call a function at a time, while `run` passes that time."""
        self._clock.schedule(seconds, ScheduledCall(act))

    def read(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """An object as the API server has it now."""
        if (document := self._controllers.host.document(kind, namespace, name)) is not None:
            return documents.without_digest(document)
        struct, key = _struct_and_key(kind, namespace, name)
        found = self.cluster.get(struct, key)
        if found is None:
            raise status_errors.not_found(RESOURCE_OF[struct], name)
        return manifests.dump(self._controllers.host.quotas.with_status(found))

    def _create(self, objects: Iterable[Manifest] | manifests.Manifest) -> list[KubeObject]:
        created = self._store(self._controllers.take(manifests.read(objects).everything))
        self._controllers.perform()
        return created

    def complete(self, objects: Iterable[KubeObject]) -> list[KubeObject]:
        """Objects with the defaults of an API server, given the existing classes."""
        return list(map(_checked, defaults.complete(objects, known=self._classes())))

    def _store(self, objects: list[KubeObject]) -> list[KubeObject]:
        # Objects that others refer to come first, so that a node is observed before its pods.
        host = self._controllers.host
        completed = defaults.complete(objects, known=self._classes(), refuse=host.refuse)
        for obj in completed:
            if isinstance(obj, Pod) and obj.metadata.annotations:
                _checked(obj)
        ordered = sorted(completed, key=lambda obj: _ORDER[type(obj)])
        create, now = self.cluster.create, self.now
        if not host.quotas:
            return self.cluster.create_all(ordered, now)
        created = []
        for obj in ordered:
            if why := host.quotas.refusal(obj):
                host.refuse(obj, why)
            else:
                created.append(create(obj, now))
                host.admitted(obj)
        return created

    def _check_default(self, new: KubeObject) -> None:
        if isinstance(new, PriorityClass):
            admission.check_only_default(new, self.cluster.all(PriorityClass))

    def _classes(self) -> list[KubeObject]:
        """The classes that defaults of other objects depend on."""
        kinds = (PriorityClass, StorageClass, LimitRange, RuntimeClass)
        return [obj for kind in kinds for obj in self.cluster.all(kind)]

    # Time

    def run(self, until: float | None = None) -> None:
        """Go on until nothing is left to do, or up to a time.

        Left to do is whatever may still place a pod. Unschedulable pods do not keep a simulation
        going, nor do retries that have changed nothing for the longest backoff.
        """
        while self._step(until):
            pass
        if until is not None and until > self.now:
            self._advance(until)
        self._report(self._replicas.cycles)
        if self._checks is not None and until is None and self._fault_plan.ends:
            self._checks.when_finished(self._replicas.leader)

    def _step(self, until: float | None) -> bool:
        """Let one thing perform, or time pass; False if that is all."""
        if self._clock.is_due:
            self._perform(self._clock.pop())
        elif self._replicas.step():
            if self._replicas.cycles % CYCLES_PER_PROGRESS == 0:
                self._report(self._replicas.cycles)
        elif self._controllers.is_due:
            self._quiescence.changed(may_help_pods=self._controllers.perform())
        else:
            if self._checks is not None and until is None and self._quiescence.is_quiet():
                self._checks.when_quiet(self._replicas.leader)
            at = self._quiescence.next_at() if until is None else self._quiescence.next_any_at()
            if at is None or (until is not None and at > until):
                return False
            self._advance(at)
        return True

    def _advance(self, to: float) -> None:
        self._recorder.passing(to)
        self._clock.advance(to)

    def _perform(self, action: object) -> None:
        if type(action) in REPLICA_ACTIONS:  # Most are.
            self._replicas.perform(action)  # type: ignore[arg-type]  # one of its actions
        elif isinstance(action, kubelet.Action):
            self._kubelet.perform(action)
            self._quiescence.changed(may_help_pods=not isinstance(action, kubelet.StartPod))
        elif isinstance(action, volumes.Action):
            self._volumes.perform(action)
            self._quiescence.changed(may_help_pods=True)
        elif isinstance(action, device_claims.Action):
            self._quiescence.changed(may_help_pods=self._claims.perform(action))
        elif isinstance(action, drivers.PrepareDevices):
            self._drivers.perform(action)
            self._quiescence.changed(may_help_pods=True)
        else:
            assert isinstance(action, ScheduledCall)
            action.act()
            self._quiescence.changed(may_help_pods=True)

    def _report(self, cycles: int) -> None:
        if self._on_progress is not None:
            waiting = self._replicas.leader.depths()["active"]
            self._on_progress(cycles, cycles + waiting)

    # Results

    @property
    def now(self) -> float:
        """Virtual time, in seconds."""
        return self._clock.now

    @property
    def scheduler(self) -> Scheduler:
        """The leading scheduler."""
        return self._replicas.leader.scheduler

    @property
    def journal(self) -> Journal:
        """The journal of the leading scheduler."""
        return self.scheduler.journal

    @property
    def events(self) -> list[EmitEvent]:
        """The emitted Events, oldest first."""
        return self._replicas.events

    @property
    def evictions(self) -> list[PodEviction]:
        """The pods that preemption evicted, oldest first."""
        return outcomes.evictions(self._replicas.journals)

    @property
    def scheduled_at(self) -> dict[str, float]:
        """When a node was selected for each pod, the last time that one was, by UID."""
        return outcomes.scheduled_at(self._replicas.journals)

    def sample_every(self, seconds: float) -> None:
        """Take the samples of `result` at multiples of this time, however much happens."""
        self._recorder.samples.interval = seconds

    def disrupted(self, disruption: Disruption) -> None:
        """Record a pod that leaves its node, but not by preemption."""
        self._recorder.disruptions.append(disruption)

    @property
    def result(self) -> Result:
        """How full the nodes were and are, how long pods waited, which are pending and why."""
        return result.collect(self, self._recorder)

    @property
    def objects(self) -> list[KubeObject]:
        """All objects of the API server."""
        with_status = self._controllers.host.quotas.with_status
        return [
            obj if kind.struct is not ResourceQuota else with_status(obj)
            for kind in KINDS.values()
            for obj in self.cluster.all(kind.struct)
        ]

    @property
    def refusals(self) -> list[Refusal]:
        """Workloads whose pods quotas or limit ranges refuse, and other refused objects."""
        return [*self._controllers.host.refusals, *self._other_refusals()]

    def report_refusals(self, source: Callable[[], Iterable[Refusal]]) -> None:
        """Add what this function returns to `refusals`: pods that others try to create."""
        self._other_refusals = source

    def frame(self, table: str = "pods", library: str | None = None) -> Any:
        """A table of the result as a data frame.

        One of `pods`, `placements`, `nodes`, `samples`, `pending`, `disruptions` and `spread`. Of
        pandas if that is installed, else of polars; `library` names one.
        """
        return tables.frame(self, table, library)

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        return html.render(self.result)

    def _depths(self) -> dict[str, int]:
        return self._replicas.leader.depths()

    @property
    def placements(self) -> dict[str, str | None]:
        """Every pod with its node, or None."""
        pods = self.cluster.by_key(Pod)
        return {key: pod.spec.node_name or None for key, pod in pods.items()}

    @property
    def held_back(self) -> dict[str, tuple[str, int]]:
        """StatefulSets with the pod that they wait for, and how many pods come after it."""
        refused = {f"{each.namespace}/{each.name}" for each in self.refusals}
        found = self._controllers.host.held_back()
        return {name: waits for name, waits in found.items() if name not in refused}

    @property
    def pending(self) -> dict[str, str]:
        """Every pod without a node, with the reason."""
        return {
            key: outcomes.why_pending(self.scheduler, pod)
            for key, pod in self.cluster.by_key(Pod).items()
            if not pod.spec.node_name and not pod.is_terminal
        }


def _struct_and_key(kind: str, namespace: str, name: str) -> tuple[type[KubeObject], str]:
    known = KINDS.get(kind)
    if known is None:
        raise InputError(f'kind "{kind}" is not known; it may be {", ".join(KINDS)}')
    return known.struct, f"{namespace or 'default'}/{name}" if known.namespaced else name


def _checked(obj: KubeObject) -> KubeObject:
    """Validate what only the simulation reads, before the object is stored."""
    if isinstance(obj, Pod):
        kubelet.run_seconds(obj)
    return obj


def _is_priority_class(obj: Manifest) -> bool:
    kind = obj.get("kind") if isinstance(obj, Mapping) else type(obj).__name__
    return kind == "PriorityClass"


def _check_update(old: KubeObject, new: KubeObject) -> None:
    """Refuse changes of immutable fields; resources of a pod may change, as by `resize`."""
    before, after = manifests.dump(old), manifests.dump(new)
    if isinstance(old, Pod):
        for each in (*before["spec"].get("containers", ()), *after["spec"].get("containers", ())):
            each.pop("resources", None)
    validation.validate_update(RESOURCE_OF[type(old)], before, after)
