"""Which pods a question is about: by name, by workload, by labels, or all that are pending."""

from collections.abc import Iterable

from moorage.api import selectors, texts
from moorage.api.meta import KubeObject, OwnerReference
from moorage.api.pod import Pod
from moorage.errors import InputError
from moorage.expansion.refusals import Refusal
from moorage.explaining.dry_run import find_pod

# As kubectl names kinds: singular, plural and short.
PODS = ("pod", "pods", "po")
WORKLOADS = {
    "Deployment": ("deployment", "deployments", "deploy"),
    "ReplicaSet": ("replicaset", "replicasets", "rs"),
    "StatefulSet": ("statefulset", "statefulsets", "sts"),
    "DaemonSet": ("daemonset", "daemonsets", "ds"),
    "ReplicationController": ("replicationcontroller", "replicationcontrollers", "rc"),
    "Job": ("job", "jobs"),
    "CronJob": ("cronjob", "cronjobs", "cj"),
}
_KIND = {name: kind for kind, names in WORKLOADS.items() for name in names}


def select(
    objects: Iterable[KubeObject],
    name: str | None = None,
    *,
    namespace: str | None = None,
    labels: str | None = None,
) -> list[Pod]:
    """The pods of a question; those without a node if the name is no pod's.

    `name` is `NAME`, `NAMESPACE/NAME`, `pod/NAME`, or a workload as `deployment/NAME`.
    """
    pods = [obj for obj in objects if isinstance(obj, Pod)]
    here = [pod for pod in pods if namespace in (None, pod.namespace)]
    kind, _, rest = (name or "").partition("/")
    if name is not None and kind.lower() in _KIND and rest:
        return _of_workload(here, _KIND[kind.lower()], rest)
    if name is not None:
        bare = rest if kind.lower() in PODS and rest else name
        if namespace is not None and "/" not in bare:
            bare = f"{namespace}/{bare}"
        found = find_pod(pods, bare)
        if namespace not in (None, found.namespace):
            raise InputError(f"-n {namespace}: {found.key} is in another namespace")
        return [found]
    pending = [pod for pod in here if not pod.node_name and not pod.is_terminal]
    if labels is None:
        if pods and not here:
            known = texts.listed(sorted({pod.namespace for pod in pods}), 60)
            raise InputError(f"-n {namespace}: there is no pod in this namespace, only in {known}")
        return pending
    try:
        selector = selectors.parse_label_selector(labels)
    except selectors.SelectorError as error:
        raise InputError(f"-l {labels}: {error}") from None
    chosen = [pod for pod in here if selector.matches(pod.labels)]
    if not chosen:
        raise InputError(f"-l {labels}: matches none of {texts.count(len(here), 'pod')}")
    return [pod for pod in chosen if not pod.node_name] or chosen[:1]


def refused(
    refusals: Iterable[Refusal], name: str | None = None, *, namespace: str | None = None
) -> list[Refusal]:
    """The refused workloads of a question: all of them, or the named one."""
    kind, _, rest = (name or "").partition("/")
    wanted = _KIND.get(kind.lower(), "")
    return [
        each
        for each in refusals
        if not each.is_pod
        and namespace in (None, each.namespace)
        and (name is None or _owns(wanted, rest, OwnerReference(kind=each.kind, name=each.name)))
    ]


def _of_workload(pods: list[Pod], kind: str, name: str) -> list[Pod]:
    """The pods of a workload without a node, or one of its pods if all have one."""
    found = [pod for pod in pods if (owner := pod.controller) and _owns(kind, name, owner)]
    if not found:
        owners = sorted({f"{o.kind}/{o.name}" for pod in pods if (o := pod.controller)})
        known = f"; owners of pods are {', '.join(owners[:5])}" if owners else ""
        raise InputError(f"{kind} {name!r} owns none of {texts.count(len(pods), 'pod')}{known}")
    return [pod for pod in found if not pod.node_name] or found[:1]


def _owns(kind: str, name: str, owner: OwnerReference) -> bool:
    """Whether an owner is the workload, or is created by it, as its name shows."""
    if owner.kind == kind:
        return owner.name == name
    created = {"Deployment": "ReplicaSet", "CronJob": "Job"}.get(kind)
    return owner.kind == created and owner.name.rpartition("-")[0] == name
