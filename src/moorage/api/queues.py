"""Queues (`scheduling.moorage.dev/v1alpha1`): how teams share a cluster; and their rules.

`ElasticQuota` of scheduler-plugins is read as well: a queue for the pods of its namespace.
`QueueForest` has the queues of a cluster as the scheduler and the results of a simulation read
them: which can be used, their ancestors, and the queue of a pod.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from moorage.api import labels, quantity, requests
from moorage.api.meta import Data, Int32, KubeObject
from moorage.api.pod import Pod
from moorage.api.quantity import Quantity

GROUP = "scheduling.moorage.dev"
QUEUE_LABEL = "moorage.dev/queue"
# Kueue's label names a LocalQueue, here a queue of the same name.
KUEUE_LABEL = "kueue.x-k8s.io/queue-name"
# Pods that name no queue, in no namespace of a queue, belong to it if it exists.
DEFAULT = "default"
# Unlisted ones are 0 in the `max` of an ElasticQuota.
NATIVE = (requests.CPU, requests.MEMORY, requests.EPHEMERAL_STORAGE)

Amounts = Mapping[str, int]


class QueueSpec(Data):
    """Amounts by resource; `pods` counts pods, the name of a DeviceClass devices of claims."""

    parent: str = ""
    # What the queue gets whenever its pods ask for it.
    guaranteed: dict[str, Quantity] = {}
    # What it may use if others leave it idle; a resource that is not listed has no limit.
    max: dict[str, Quantity] = {}
    # Its part of what is not guaranteed, relative to other queues.
    weight: Int32 = 1
    # Pods of these namespaces that name no queue belong to it.
    namespaces: tuple[str, ...] = ()


class Queue(KubeObject):
    """A part of the cluster for some pods; a tree of queues by `parent`."""

    spec: QueueSpec = QueueSpec()


class ElasticQuotaSpec(Data):
    min: dict[str, Quantity] = {}
    max: dict[str, Quantity] = {}


class ElasticQuota(KubeObject):
    """`scheduling.x-k8s.io/v1alpha1`: a guarantee and a limit for one namespace."""

    spec: ElasticQuotaSpec = ElasticQuotaSpec()


def queue_name(pod: Pod) -> str:
    """The queue that a pod's labels name; empty if they name none."""
    found = pod.metadata.labels
    return found.get(QUEUE_LABEL) or found.get(KUEUE_LABEL) or ""


class QueueLimits(NamedTuple):
    """What an object says about a queue."""

    parent: str
    guaranteed: dict[str, int]
    max: dict[str, int]
    weight: int = 1
    namespaces: tuple[str, ...] = ()


class QueueForest:
    """The queues of a cluster; an ElasticQuota is one under the name `namespace/name`."""

    def __init__(self, queues: Iterable[Queue] = (), quotas: Iterable[ElasticQuota] = ()) -> None:
        self._all = dict(_limits(queues, quotas))
        # The queues that can be used, each after its parent; for the others, why not.
        self.limits: dict[str, QueueLimits] = {}
        self.problems: dict[str, str] = {}
        # A queue and its ancestors.
        self.lineages: dict[str, tuple[str, ...]] = {}
        for name in self._all:
            self._add(name, ())
        self._by_namespace = {
            namespace: name
            for name, limits in self._all.items()
            if name in self.limits
            for namespace in limits.namespaces
        }

    def _add(self, name: str, below: tuple[str, ...]) -> None:
        """Add a queue after its parent."""
        if name in self.limits or name in self.problems:
            return
        parent = self._all[name].parent
        if name in below:
            self.problems[name] = f'queue "{name}": its parents form a cycle'
            return
        if parent and parent not in self._all:
            self.problems[name] = f'queue "{name}": its parent "{parent}" does not exist'
            return
        if parent:
            self._add(parent, (*below, name))
            if parent not in self.limits:
                problem = f'queue "{name}": its parent "{parent}" cannot be used'
                self.problems.setdefault(name, problem)
                return
        self.limits[name] = self._all[name]
        self.lineages[name] = (name, *self.lineages.get(parent, ()))

    def named_by(self, pod: Pod) -> str:
        """The queue that a pod names, else that of its namespace, else the default one.

        It need not exist.
        """
        return queue_name(pod) or self._by_namespace.get(pod.metadata.namespace) or DEFAULT

    def problem(self, pod: Pod) -> str:
        """Why a pod cannot use the queue that it names; empty if it names none."""
        name = queue_name(pod)
        if not name or name in self.limits:
            return ""
        return self.problems.get(name, f'queue "{name}" not found')

    def entitled(self, name: str, totals: Amounts) -> float:
        """The share that a queue can expect if all queues ask for more.

        It is its part by weight of what its parent is entitled to, or its guarantee.
        """
        part = 1.0
        for each in reversed(self.lineages.get(name, ())):
            own = self.limits[each]
            same = [it.weight for it in self.limits.values() if it.parent == own.parent]
            part = max(part * own.weight / sum(same), dominant_share(own.guaranteed, totals))
        return part


def dominant_share(used: Amounts, totals: Amounts) -> float:
    """The largest part of any resource of the cluster."""
    return max((amount / totals[r] for r, amount in used.items() if totals.get(r)), default=0.0)


def _limits(
    queues: Iterable[Queue], quotas: Iterable[ElasticQuota]
) -> Iterator[tuple[str, QueueLimits]]:
    """What the objects say, in the order of their names."""
    units = requests.units
    for queue in sorted(queues, key=lambda each: each.name):
        spec = queue.spec
        limits = QueueLimits(
            spec.parent,
            units(spec.guaranteed),
            units(spec.max),
            max(spec.weight, 1),
            spec.namespaces,
        )
        yield queue.name, limits
    for quota in sorted(quotas, key=lambda each: each.key):
        most = units(quota.spec.max)
        if most:
            most = dict.fromkeys(NATIVE, 0) | most
        least = units(quota.spec.min)
        yield quota.key, QueueLimits("", least, most, namespaces=(quota.namespace,))


class ClaimUsers:
    """The devices of claims by queue; a claim that several pods of a queue use counts once."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str], tuple[int, Amounts]] = {}

    def count(self, queue: str, claim: str) -> int:
        """How many pods of a queue use a claim."""
        return self._claims.get((queue, claim), (0, {}))[0]

    def add(self, queue: str, claim: str, devices: Amounts) -> Amounts:
        """A pod uses a claim; returns what its queue uses more."""
        users, counted = self._claims.get((queue, claim), (0, devices))
        self._claims[queue, claim] = users + 1, counted
        return {} if users else devices

    def remove(self, queue: str, claim: str) -> Amounts:
        """A pod uses a claim no longer; returns what its queue uses less."""
        users, counted = self._claims.get((queue, claim), (0, {}))
        if users > 1:
            self._claims[queue, claim] = users - 1, counted
            return {}
        self._claims.pop((queue, claim), None)
        return counted

    def replace(self, queue: str, claim: str, devices: Amounts) -> Amounts:
        """The number of devices is another one; returns the difference."""
        users, counted = self._claims[queue, claim]
        self._claims[queue, claim] = users, devices
        names = {**counted, **devices}
        return {name: devices.get(name, 0) - counted.get(name, 0) for name in names}


def validate_queue(queue: Queue) -> Iterator[tuple[str, Any, str]]:
    """The violated rules: field, value, rule."""
    spec = queue.spec
    if spec.weight < 1:
        yield "spec.weight", spec.weight, "must be greater than or equal to 1"
    if spec.parent == queue.name:
        yield "spec.parent", spec.parent, "must be another queue"
    elif spec.parent:
        for rule in labels.subdomain_problems(spec.parent):
            yield "spec.parent", spec.parent, rule
    yield from _amounts("guaranteed", spec.guaranteed, "max", spec.max)


def validate_elastic_quota(quota: ElasticQuota) -> Iterator[tuple[str, Any, str]]:
    """The violated rules: field, value, rule."""
    yield from _amounts("min", quota.spec.min, "max", quota.spec.max)


def _amounts(
    lower: str, least: dict[str, Quantity], upper: str, most: dict[str, Quantity]
) -> Iterator[tuple[str, Any, str]]:
    """Names of resources, and that what is guaranteed may be used."""
    for field, amounts in ((lower, least), (upper, most)):
        for name in amounts:
            for rule in labels.key_problems(name):
                yield f"spec.{field}[{name}]", name, rule
    for name, amount in least.items():
        if name in most and quantity.nano(amount) > quantity.nano(most[name]):
            rule = f"must be less than or equal to spec.{upper} ({most[name]})"
            yield f"spec.{lower}[{name}]", amount, rule
