"""Simulation: a cluster in memory and a scheduler, on virtual time.

    sim = Simulation(objects)
    sim.run()
    sim.placements    {"default/web-0": "node-17", "default/web-1": None}
    sim.pending       {"default/web-1": "0/5 nodes are available: ..."}

The loop is every shell's: news, answers, what is due, one pod; and when nothing is left to do at
this moment, time passes. What a decision is made of is not known here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from moorage.api import config as configuration
from moorage.api import defaults, manifests
from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.policy import PriorityClass
from moorage.api.storage import StorageClass
from moorage.core.extenders import ExtenderClient
from moorage.core.journal import Journal
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError
from moorage.framework.effects import EmitEvent
from moorage.sim import evictions, kubelet, priority_classes, reasons, refusals, volumes
from moorage.sim.checks import Checks
from moorage.sim.clock import Clock
from moorage.sim.cluster import Cluster
from moorage.sim.controllers import Controllers, Reconcile
from moorage.sim.evictions import Eviction
from moorage.sim.faults import Faults, Trouble
from moorage.sim.happenings import Act, Call
from moorage.sim.kubelet import Kubelet
from moorage.sim.patience import Patience
from moorage.sim.replica import MakeScheduler
from moorage.sim.replicas import Happening, Replicas
from moorage.sim.results import html, result, tables
from moorage.sim.results.recorder import Recorder
from moorage.sim.results.result import Disruption, Result
from moorage.sim.trace import Trace
from moorage.sim.volumes import VolumeController

Manifest = Mapping[str, Any] | KubeObject
Progress = Callable[[int, int], None]

CYCLES_PER_PROGRESS = 100

_ORDER = {kind.struct: place for place, kind in enumerate(KINDS.values())}


class Simulation:
    """A cluster and its scheduler; virtual time starts at 0.

    `objects` are dicts, as JSON or YAML would give them, or structs of `moorage.api`; `config` is
    a KubeSchedulerConfiguration as a dict or a path. With `faults` the world misbehaves, with
    `check` everything that must hold is checked after every step, with `trace` every call of the
    scheduler is kept. `on_progress(done, total)` is called now and then during `run`. `extenders`
    are asked as HTTP extenders would be; those that the configuration names are not called.
    """

    def __init__(
        self,
        objects: Iterable[Manifest],
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
        self.cluster = Cluster()
        self.trace = Trace() if trace else None
        self._clock: Clock[object] = Clock()
        self._kubelet = Kubelet(self.cluster, self._clock, start_seconds=start_seconds)
        self._trouble = Trouble(seed, faults or Faults.none())
        self._volumes = VolumeController(self.cluster, self._clock, self._trouble)
        make_scheduler = MakeScheduler(self.config, extenders)
        self._checks = (
            Checks(self.cluster, self._clock, self.config, make_scheduler, seed) if check else None
        )
        self._on_progress = on_progress
        self._recorder = Recorder(self.cluster, self._clock, self._depths)
        self._controllers = Controllers(self.cluster, self._clock, self._store)
        self._create(objects)
        self._replicas = Replicas(
            self.cluster, self._clock, make_scheduler, seed, self._trouble, self.trace, self._checks
        )
        self._patience = Patience(
            self._clock,
            self._kubelet,
            self._replicas,
            self._trouble,
            self.config.pod_max_backoff_seconds,
        )

    # What happens to the cluster

    def create(self, objects: Iterable[Manifest]) -> None:
        """Add objects, at this moment."""
        objects = list(objects)
        classes = [obj for obj in objects if priority_classes.is_class(obj)]
        for new in manifests.from_dicts(classes):
            priority_classes.check_default(new, self.cluster.all(PriorityClass))
        created = self._create(objects)
        self._patience.changed(relief=any(not isinstance(obj, Pod) for obj in created))

    def update(self, obj: Manifest) -> None:
        """Replace an object by a newer version of it."""
        for new in manifests.from_dicts([obj]):
            priority_classes.check_default(new, self.cluster.all(PriorityClass))
            (completed,) = defaults.complete([self.cluster.merged(new)], known=self._classes())
            self.cluster.update(_checked(completed))
        self._patience.changed(relief=True)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object; the namespace of a cluster-scoped one is not looked at."""
        struct, key = _place(kind, namespace, name)
        if struct is PriorityClass:
            priority_classes.check_delete(key)
        self.cluster.delete(struct, key, self.now)
        self._patience.changed(relief=True)

    def scale(self, kind: str, namespace: str, name: str, replicas: int) -> None:
        """Change how many pods a workload has: a Deployment, ReplicaSet or StatefulSet."""
        self._controllers.scale(kind, namespace, name, replicas)
        self._patience.changed(relief=True)

    def at(self, seconds: float, act: Act) -> None:
        """Let something be done at a time; it happens while `run` passes that time."""
        self._clock.schedule(seconds, Call(act))

    def read(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """An object as the API server has it now."""
        struct, key = _place(kind, namespace, name)
        found = self.cluster.get(struct, key)
        if found is None:
            raise refusals.not_found(KINDS[kind].plural, name)
        return manifests.dump(found)

    def _create(self, objects: Iterable[Manifest]) -> list[KubeObject]:
        return self._store(self._controllers.take(manifests.read(objects).everything))

    def complete(self, objects: Iterable[KubeObject]) -> list[KubeObject]:
        """Objects with what an API server would fill in, given the classes that are there."""
        return list(map(_checked, defaults.complete(objects, known=self._classes())))

    def _store(self, objects: list[KubeObject]) -> list[KubeObject]:
        # What others refer to comes first, so that nobody is told of a pod before its node.
        ordered = sorted(self.complete(objects), key=lambda obj: _ORDER[type(obj)])
        return [self.cluster.create(obj, self.now) for obj in ordered]

    def _classes(self) -> list[KubeObject]:
        """What defaults of other objects depend on."""
        return [*self.cluster.all(PriorityClass), *self.cluster.all(StorageClass)]

    # How time passes

    def run(self, until: float | None = None) -> None:
        """Go on until nothing is left to do, or up to a time.

        Left to do is whatever may still place a pod. Pods that rest until something changes do
        not keep a simulation going, nor do retries that have led nowhere for a whole back-off.
        """
        while self._step(until):
            pass
        if until is not None and until > self.now:
            self._pass(until)
        self._report(self._replicas.cycles)
        if self._checks is not None and until is None and self._trouble.ends:
            self._checks.at_rest(self._replicas.leader)

    def _step(self, until: float | None) -> bool:
        """Let one thing happen, or time pass; False if that is all."""
        clock = self._clock
        if clock.next_at is not None and clock.next_at <= clock.now:
            self._happen(clock.pop())
        elif self._replicas.turn():
            if self._replicas.cycles % CYCLES_PER_PROGRESS == 0:
                self._report(self._replicas.cycles)
        else:
            if self._checks is not None and until is None and self._patience.is_at_ease():
                self._checks.at_ease(self._replicas.leader)
            at = self._patience.next_at() if until is None else self._patience.soonest()
            if at is None or (until is not None and at > until):
                return False
            self._pass(at)
        return True

    def _pass(self, to: float) -> None:
        self._recorder.passing(to)
        self._clock.advance(to)

    def _happen(self, what: object) -> None:
        if isinstance(what, kubelet.Happening):
            self._kubelet.happen(what)
            self._patience.changed(relief=not isinstance(what, kubelet.Start))
        elif isinstance(what, volumes.Happening):
            self._volumes.happen(what)
            self._patience.changed(relief=True)
        elif isinstance(what, Call):
            what.act()
            self._patience.changed(relief=True)
        elif isinstance(what, Reconcile):
            self._patience.changed(relief=self._controllers.happen(what))
        else:
            assert isinstance(what, Happening)
            self._replicas.happen(what)

    def _report(self, cycles: int) -> None:
        if self._on_progress is not None:
            waiting = self._replicas.leader.waiting()["active"]
            self._on_progress(cycles, cycles + waiting)

    # What came of it

    @property
    def now(self) -> float:
        """Virtual time, in seconds."""
        return self._clock.now

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler that leads now; for those who watch it at work."""
        return self._replicas.leader.scheduler

    @property
    def journal(self) -> Journal:
        """The facts, as the scheduler that leads now has them."""
        return self._replicas.leader.scheduler.journal

    @property
    def events(self) -> list[EmitEvent]:
        """The Events that operators would read, oldest first."""
        return self._replicas.events

    @property
    def evictions(self) -> list[Eviction]:
        """Who had to leave a node for another pod, oldest first."""
        return evictions.of(self._replicas.journals)

    def sample_every(self, seconds: float) -> None:
        """Take the samples of `result` at multiples of this time, however much happens."""
        self._recorder.samples.interval = seconds

    def disrupted(self, disruption: Disruption) -> None:
        """Take note of a pod that somebody other than the scheduler makes leave its node."""
        self._recorder.disruptions.append(disruption)

    @property
    def result(self) -> Result:
        """How full the nodes were and are, how long pods waited, which are pending and why."""
        return result.collect(self, self._recorder)

    @property
    def objects(self) -> list[KubeObject]:
        """Everything that is there, as the API server has it now."""
        return [obj for kind in KINDS.values() for obj in self.cluster.all(kind.struct)]

    def frame(self, table: str = "pods", library: str | None = None) -> Any:
        """`pods`, `nodes`, `samples`, `pending`, `disruptions` or `spread` as a data frame.

        Of pandas if that is installed, else of polars; `library` names the one that is wanted.
        """
        return tables.frame(self, table, library)

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        return html.render(self.result)

    def _depths(self) -> dict[str, int]:
        return self._replicas.leader.depths()

    @property
    def placements(self) -> dict[str, str | None]:
        """Every pod with its node, or None."""
        return {pod.key: pod.node_name or None for pod in self.cluster.all(Pod)}

    @property
    def held_back(self) -> dict[str, tuple[str, int]]:
        """Stateful sets with the pod that has to run first, and how many they make after it."""
        return self._controllers.held_back()

    @property
    def pending(self) -> dict[str, str]:
        """Every pod without a node, and why it has none."""
        scheduler = self._replicas.leader.scheduler
        return {
            pod.key: reasons.why_pending(scheduler, pod)
            for pod in self.cluster.active(Pod)
            if not pod.node_name
        }


def _place(kind: str, namespace: str, name: str) -> tuple[type[KubeObject], str]:
    known = KINDS.get(kind)
    if known is None:
        raise InputError(f'kind "{kind}" is not known; it may be {", ".join(KINDS)}')
    return known.struct, f"{namespace or 'default'}/{name}" if known.namespaced else name


def _checked(obj: KubeObject) -> KubeObject:
    """Complain about what only the simulation reads before it is taken in."""
    if isinstance(obj, Pod):
        kubelet.run_seconds(obj)
    return obj
