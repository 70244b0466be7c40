"""What a change of quotas does: other limits for a queue, and their effect on every queue.

A change is a text, `QUEUE:FIELD=VALUE,...`:

    team-a:max.cpu=100,guaranteed.cpu=40,weight=3     a Queue; `max.cpu=` removes a limit
    ml/quota:min.cpu=10,max.cpu=20                    an ElasticQuota, by namespace and name

Pods on nodes, pending and reclaimed pods are those of the moment at which the change takes effect.
Waits are those of a simulation until no pod waits any more; they are given if pods end, which the
annotation moorage.dev/run-seconds says.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from moorage.api import quantity, queues
from moorage.api.config import SchedulerConfiguration
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.queues import ElasticQuota, Queue, QueueForest
from moorage.controllers.kubelet import RUN_SECONDS
from moorage.errors import InputError
from moorage.planning.packing import Packing
from moorage.plugins.fair_share import FairShare
from moorage.plugins.fair_share.tree import QueueTree
from moorage.sim.results.result import WaitTimes
from moorage.sim.run import Simulation

AMOUNTS = {Queue: ("guaranteed", "max"), ElasticQuota: ("min", "max")}


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """One queue, without or with the changes."""

    running: int
    pending: int
    share: float
    entitled: float
    waits: WaitTimes | None

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {
            "running": self.running,
            "pending": self.pending,
            "share": self.share,
            "entitled": self.entitled,
            **({} if self.waits is None else {"timeToSchedule": self.waits.to_dict()}),
        }


@dataclass(frozen=True, slots=True)
class QueueEffect:
    """What changes for a queue and its children."""

    name: str
    before: QueueFigures
    after: QueueFigures
    # Pods that lose their node to pods of other queues.
    reclaimed: int

    def to_dict(self) -> dict[str, Any]:
        """The effect as plain data."""
        before, after = self.before.to_dict(), self.after.to_dict()
        return {"before": before, "after": after, "reclaimed": self.reclaimed}


def changed(text: str, objects: Iterable[KubeObject]) -> Queue | ElasticQuota:
    """The queue that a text names, with the change; raises InputError."""
    name, colon, given = text.partition(":")
    fields = dict(each.partition("=")[::2] for each in given.split(",") if each)
    if not colon or not fields:
        raise InputError(f"queue {text!r}: must be QUEUE:FIELD=VALUE,...")
    found = next((obj for obj in objects if _is_named(obj, name)), None)
    if not isinstance(found, Queue | ElasticQuota):
        raise InputError(f"there is no queue {name!r}")
    for field, value in fields.items():
        found = _with(found, field, value, text)
    rules = (
        queues.validate_queue(found)
        if isinstance(found, Queue)
        else queues.validate_elastic_quota(found)
    )
    for field, value, rule in rules:
        raise InputError(f"queue {text!r}: {field}: {rule}, is {value!r}")
    return found


def _is_named(obj: KubeObject, name: str) -> bool:
    if isinstance(obj, Queue):
        return obj.name == name
    return isinstance(obj, ElasticQuota) and name in (obj.key, obj.name)


def _with(found: Queue | ElasticQuota, field: str, value: str, text: str) -> Queue | ElasticQuota:
    amounts, _, resource = field.partition(".")
    if amounts in AMOUNTS[type(found)] and resource:
        known = {k: v for k, v in getattr(found.spec, amounts).items() if k != resource}
        if value:
            try:
                quantity.nano(value)
            except ValueError:
                raise InputError(f"queue {text!r}: {field}={value} is not an amount") from None
            known[resource] = value
        spec = replace(found.spec, **{amounts: known})
    elif field == "weight" and isinstance(found, Queue) and value.isdecimal():
        spec = replace(found.spec, weight=int(value))
    elif field == "parent" and isinstance(found, Queue):
        spec = replace(found.spec, parent=value)
    else:
        names = [f"{name}.RESOURCE" for name in AMOUNTS[type(found)]]
        more = ["weight", "parent"] if isinstance(found, Queue) else []
        raise InputError(f"queue {text!r}: {field} must be one of {', '.join(names + more)}")
    return replace(found, spec=spec)


def require_fair_share(packing: Packing) -> None:
    """Raise InputError if no profile uses queues."""
    profiles = packing.scheduler.profiles.values()
    if not any(isinstance(each, FairShare) for one in profiles for each in one.pre_filters):
        raise InputError("a change of a queue needs the plugin FairShare; enable it with --config")


class QueueState:
    """The queues of a packing at a moment."""

    def __init__(self, packing: Packing) -> None:
        cluster = packing.scheduler.cluster
        self.forest = QueueForest(cluster.all(Queue), cluster.all(ElasticQuota))
        tree = cluster.derived(QueueTree)
        tree.refresh()
        self._totals = dict(tree.totals)
        self._shares = {name: tree.queues[name].share(tree.totals) for name in self.forest.limits}
        self.queue_of = {
            pod.key: self.forest.named_by(pod) for pod in (*packing.running, *packing.waiting)
        }
        self._running = self.count(pod.key for pod in packing.running)
        self._pending = self.count(pod.key for pod in packing.waiting)

    def count(self, pods: Iterable[str]) -> Counter[str]:
        """How many of these pods each queue has, with those of its children."""
        lineages = self.forest.lineages
        return Counter(
            name for key in pods for name in lineages.get(self.queue_of.get(key, ""), ())
        )

    def figures(self, name: str, waits: Mapping[str, WaitTimes]) -> QueueFigures:
        """The figures of one queue."""
        return QueueFigures(
            running=self._running[name],
            pending=self._pending[name],
            share=round(self._shares.get(name, 0.0), 6),
            entitled=round(self.forest.entitled(name, self._totals), 6),
            waits=waits.get(name),
        )


def effects(
    before: QueueState,
    after: QueueState,
    reclaimed: Iterable[str],
    pods: Iterable[Pod],
    objects: Iterable[KubeObject],
    new: Iterable[Queue | ElasticQuota],
    config: SchedulerConfiguration,
    seed: int = 0,
) -> tuple[QueueEffect, ...]:
    """The effect on every queue; `objects` and `new` are the cluster and its changed queues."""
    objects = list(objects)
    waits: tuple[Mapping[str, WaitTimes], Mapping[str, WaitTimes]] = ({}, {})
    replaced: dict[tuple[type[KubeObject], str], KubeObject] = {
        (type(each), each.key): each for each in new
    }
    if any(RUN_SECONDS in pod.metadata.annotations for pod in pods):
        then = [replaced.get((type(obj), obj.key), obj) for obj in objects]
        waits = _waits(objects, config, seed), _waits(then, config, seed)
    lost = before.count(reclaimed)
    names = sorted({*before.forest.limits, *after.forest.limits})
    return tuple(
        QueueEffect(name, before.figures(name, waits[0]), after.figures(name, waits[1]), lost[name])
        for name in names
    )


def _waits(
    objects: list[KubeObject], config: SchedulerConfiguration, seed: int
) -> dict[str, WaitTimes]:
    """How long pods of each queue wait until they are bound."""
    simulation = Simulation(objects, config=config, seed=seed)
    simulation.run()
    return {each.name: each.waits for each in simulation.result.queues}
