"""Simulation: a cluster in memory and a scheduler, on virtual time.

    sim = Simulation(objects)
    sim.run()
    sim.placements    {"default/web-0": "node-17", "default/web-1": None}
    sim.pending       {"default/web-1": "0/5 nodes are available: ..."}

The loop is every shell's: news, answers, what is due, one pod; and when nothing is left to do at
this moment, time passes. What a decision is made of is not known here.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moorage.api import config as configuration
from moorage.api import defaults, manifests
from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.policy import PriorityClass
from moorage.api.storage import StorageClass
from moorage.core.journal import Journal
from moorage.errors import InputError
from moorage.framework.effects import EmitEvent
from moorage.sim import kubelet, reasons, refusals
from moorage.sim.checks import Checks
from moorage.sim.clock import Clock
from moorage.sim.cluster import Cluster
from moorage.sim.faults import Faults, Trouble
from moorage.sim.kubelet import Kubelet
from moorage.sim.replica import MakeScheduler
from moorage.sim.replicas import Happening, Replicas
from moorage.sim.trace import Trace

Manifest = Mapping[str, Any] | KubeObject
Progress = Callable[[int, int], None]

# What is tried again and again without anything else happening is given up after the longest
# back-off, with what the alignment to whole seconds may add; and a wait on permit may be longer.
SPARE_SECONDS = 2.0
LONGEST_PERMIT_SECONDS = 15 * 60.0
TRIES_IN_TROUBLE = 50
CYCLES_PER_PROGRESS = 100

_ORDER = {kind.struct: place for place, kind in enumerate(KINDS.values())}


class Simulation:
    """A cluster and its scheduler; virtual time starts at 0.

    `objects` are dicts, as JSON or YAML would give them, or structs of `moorage.api`; `config` is
    a KubeSchedulerConfiguration as a dict or a path. With `faults` the world misbehaves, with
    `check` everything that must hold is checked after every step, with `trace` every call of the
    scheduler is kept. `on_progress(done, total)` is called now and then during `run`.
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
    ) -> None:
        self.config = configuration.load(config)
        self.cluster = Cluster()
        self.trace = Trace() if trace else None
        self._clock: Clock[object] = Clock()
        self._kubelet = Kubelet(self.cluster, self._clock, start_seconds=start_seconds)
        self._trouble = Trouble(seed, faults or Faults.none())
        make_scheduler = MakeScheduler(self.config)
        self._checks = (
            Checks(self.cluster, self._clock, self.config, make_scheduler, seed) if check else None
        )
        self._on_progress = on_progress
        self._changed_at = 0.0
        self._create(objects)
        self._replicas = Replicas(
            self.cluster, self._clock, make_scheduler, seed, self._trouble, self.trace, self._checks
        )

    # What happens to the cluster

    def create(self, objects: Iterable[Manifest]) -> None:
        """Add objects, at this moment."""
        self._create(objects)
        self._changed_at = self.now

    def update(self, obj: Manifest) -> None:
        """Replace an object by a newer version of it."""
        for new in manifests.from_dicts([obj]):
            (completed,) = defaults.complete([self.cluster.merged(new)], known=self._classes())
            self.cluster.update(_checked(completed))
        self._changed_at = self.now

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object; the namespace of a cluster-scoped one is not looked at."""
        struct, key = _place(kind, namespace, name)
        self.cluster.delete(struct, key, self.now)
        self._changed_at = self.now

    def read(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """An object as the API server has it now."""
        struct, key = _place(kind, namespace, name)
        found = self.cluster.get(struct, key)
        if found is None:
            raise refusals.not_found(KINDS[kind].plural, name)
        return manifests.dump(found)

    def _create(self, objects: Iterable[Manifest]) -> None:
        read = manifests.from_dicts(objects)
        # What others refer to comes first, so that nobody is told of a pod before its node.
        completed = defaults.complete(read, known=self._classes())
        for obj in sorted(map(_checked, completed), key=lambda obj: _ORDER[type(obj)]):
            self.cluster.create(obj, self.now)

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
            self._clock.advance(until)
        self._report(self._replicas.cycles)
        if self._checks is not None and until is None:
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
            at = self._next_at() if until is None else self._soonest(clock.next_at)
            if at is None or (until is not None and at > until):
                return False
            clock.advance(at)
        return True

    def _happen(self, what: object) -> None:
        if isinstance(what, kubelet.Happening):
            self._changed_at = self.now
            self._kubelet.happen(what)
        else:
            assert isinstance(what, Happening)
            self._replicas.happen(what)

    def _soonest(self, *moments: float | None) -> float | None:
        """The first of these and of what the scheduler will do by itself."""
        known = [at for at in (*moments, self._replicas.next_at()) if at is not None]
        return min(known, default=None)

    def _next_at(self) -> float | None:
        """When something happens that may still place a pod; None if nothing will."""
        next_at = self._clock.next_at
        if self._is_anything_under_way():
            return self._soonest(next_at)
        if not self._is_anybody_waiting():
            return None  # Pods may still end, but that helps nobody.
        return next_at if self._is_retrying_useless() else self._soonest(next_at)

    def _is_anything_under_way(self) -> bool:
        """Whether more is to come than the ends of pods that run for a given time."""
        return len(self._clock) > self._kubelet.running_to_an_end

    def _is_anybody_waiting(self) -> bool:
        return any(
            replica.holds_room() or sum(replica.waiting().values()) > 0
            for replica in self._replicas.running
        )

    def _is_retrying_useless(self) -> bool:
        """Whether what the scheduler will do by itself can be expected to change nothing.

        Pods that only rest are left alone: Kubernetes tries them every five minutes, for ever.
        """
        replicas = self._replicas.running
        if any(replica.holds_room() for replica in replicas):
            return self._quiet_seconds() > self._patience_seconds() + LONGEST_PERMIT_SECONDS
        if any(replica.is_retrying() for replica in replicas):
            return self._quiet_seconds() > self._patience_seconds()
        return True

    def _quiet_seconds(self) -> float:
        """How long nothing has changed that could make a difference."""
        since = max(self._changed_at, self._replicas.changed_at, self._trouble.over_since(self.now))
        return self.now - since

    def _patience_seconds(self) -> float:
        # While the world misbehaves, the next try may succeed by luck.
        tries = 1 if self._trouble.is_over(self.now) else TRIES_IN_TROUBLE
        return tries * (self.config.pod_max_backoff_seconds + SPARE_SECONDS)

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
    def journal(self) -> Journal:
        """The facts, as the scheduler that leads now has them."""
        return self._replicas.leader.scheduler.journal

    @property
    def events(self) -> list[EmitEvent]:
        """The Events that operators would read, oldest first."""
        return self._replicas.events

    @property
    def placements(self) -> dict[str, str | None]:
        """Every pod with its node, or None."""
        return {pod.key: pod.node_name or None for pod in self.cluster.all(Pod)}

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
