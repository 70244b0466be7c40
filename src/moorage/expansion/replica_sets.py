"""Deployments, replica sets and replication controllers: so many pods, whichever they are."""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from moorage.api import selectors
from moorage.api.meta import LabelSelector
from moorage.api.pod import Pod
from moorage.api.selectors import Selector
from moorage.api.workloads import (
    Deployment,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
    SelectedSpec,
)
from moorage.errors import ManifestError
from moorage.expansion import names, templates
from moorage.expansion.children import Children, live
from moorage.expansion.names import Names
from moorage.expansion.wanted import Wanted

TEMPLATE_HASH = "pod-template-hash"
DEFAULT_REPLICAS = 1


def of_deployment(deployment: Deployment, children: Children) -> ReplicaSet | None:
    """The replica set that a deployment makes first; None if it has made one, or all its pods."""
    spec = deployment.spec
    if spec.template is None:
        where = f"Deployment {deployment.namespace or 'default'}/{deployment.name}"
        raise ManifestError(f"{where}, spec.template: is missing")
    if children.of(deployment, ReplicaSet):
        return None
    selector = _selector(spec.selector, spec.template)
    there = len(live(children.of_replica_sets(deployment, selector)))
    there += len(live(children.adoptable(deployment, selector)))
    missing = max(0, _count(spec.replicas) - there)
    if there and not missing:
        return None
    return _replica_set(deployment, spec.template, missing)


def scaled(replica_sets: Iterable[ReplicaSet], replicas: int) -> ReplicaSet | None:
    """The replica set that follows when its deployment is scaled: the one with the most pods."""
    found = max(replica_sets, key=lambda each: _count(each.spec.replicas), default=None)
    return found and replace(found, spec=replace(found.spec, replicas=replicas))


def wanted(owner: ReplicaSet | ReplicationController, children: Children, serials: Names) -> Wanted:
    """As many pods as there are replicas."""
    template = owner.spec.template
    if template is None:
        return Wanted()
    if isinstance(owner, ReplicaSet):
        selector = _selector(owner.spec.selector, template)
    else:
        selector = selectors.selector_from_map(owner.spec.selector or template.metadata.labels)
    own = children.of(owner, Pod)
    there = [*live(own), *live(children.adoptable(owner, selector))]
    count = _count(owner.spec.replicas)
    taken = {pod.name for pod in own}
    made = [_pod(owner, template, serials, taken) for _ in range(count - len(there))]
    return Wanted(made=made, surplus=_least_wanted(there)[: max(0, len(there) - count)])


def _pod(
    owner: ReplicaSet | ReplicationController,
    template: PodTemplateSpec,
    serials: Names,
    taken: set[str],
) -> Pod:
    key = f"{type(owner).__name__}/{owner.namespace or 'default'}/{owner.name}"
    return templates.pod(owner, template, serials.fresh(key, f"{owner.name}-", taken))


def _replica_set(deployment: Deployment, template: PodTemplateSpec, count: int) -> ReplicaSet:
    letters = names.template_hash(msgspec.json.encode(template).decode())
    label = {TEMPLATE_HASH: letters}
    selector = deployment.spec.selector or LabelSelector(match_labels=template.metadata.labels)
    meta = replace(template.metadata, labels=template.metadata.labels | label)
    return ReplicaSet(
        api_version="apps/v1",
        kind="ReplicaSet",
        metadata=templates.owned_meta(deployment, f"{deployment.name}-{letters}", meta),
        spec=SelectedSpec(
            selector=replace(selector, match_labels=selector.match_labels | label),
            replicas=count,
            template=replace(template, metadata=meta),
        ),
    )


def _selector(selector: LabelSelector | None, template: PodTemplateSpec) -> Selector:
    if selector is None:
        return selectors.selector_from_map(template.metadata.labels)
    return selectors.compile_label_selector(selector)


def _count(replicas: int | None) -> int:
    return DEFAULT_REPLICAS if replicas is None else max(0, replicas)


def _least_wanted(pods: list[Pod]) -> list[Pod]:
    """Those to go first: without a node, then not running yet, then the newest."""
    newest_first = list(reversed(pods))
    return sorted(
        newest_first, key=lambda pod: (bool(pod.node_name), pod.status.phase == "Running")
    )
