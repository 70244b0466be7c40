"""Queues (`scheduling.moorage.dev/v1alpha1`): how teams share a cluster; and their rules.

`ElasticQuota` of scheduler-plugins is read as well: a queue for the pods of its namespace.
"""

from collections.abc import Iterator
from typing import Any

from moorage.api import labels, quantity
from moorage.api.meta import Data, Int32, KubeObject
from moorage.api.pod import Pod
from moorage.api.quantity import Quantity

GROUP = "scheduling.moorage.dev"
QUEUE_LABEL = "moorage.dev/queue"
# Kueue's label names a LocalQueue, here a queue of the same name.
KUEUE_LABEL = "kueue.x-k8s.io/queue-name"


class QueueSpec(Data):
    """Amounts by resource; `pods` is the number of pods."""

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
