"""Deployments, replica sets and replication controllers: a number of interchangeable pods."""

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
from moorage.expansion import templates
from moorage.expansion.children import Children, ControllerActions, live
from moorage.expansion.templates import NameGenerator

TEMPLATE_HASH = "pod-template-hash"


def of_deployment(deployment: Deployment, children: Children) -> ReplicaSet | None:
    """The first replica set of a deployment; None if it has one, or has all its pods."""
    spec = deployment.spec
    if spec.template is None:
        raise templates.missing_field(deployment, "spec.template")
    if children.of(deployment, ReplicaSet):
        return None
    selector = _selector(spec.selector, spec.template)
    existing = len(live(children.of_replica_sets(deployment, selector)))
    existing += len(live(children.adoptable(deployment, selector)))
    missing = max(0, _count(spec.replicas) - existing)
    if existing and not missing:
        return None
    return _replica_set(deployment, spec.template, missing)


def scaled(replica_sets: Iterable[ReplicaSet], replicas: int) -> ReplicaSet | None:
    """The replica set that changes when its deployment is scaled: the one with the most pods."""
    found = max(replica_sets, key=lambda each: _count(each.spec.replicas), default=None)
    return found and replace(found, spec=replace(found.spec, replicas=replicas))


def reconcile(
    owner: ReplicaSet | ReplicationController, children: Children, names: NameGenerator
) -> ControllerActions:
    """Create or delete pods until there are as many as replicas."""
    template = owner.spec.template
    if template is None:
        return ControllerActions()
    if isinstance(owner, ReplicaSet):
        selector = _selector(owner.spec.selector, template)
    else:
        selector = selectors.selector_from_map(owner.spec.selector or template.metadata.labels)
    own = children.of(owner, Pod)
    existing = [*live(own), *live(children.adoptable(owner, selector))]
    missing = _count(owner.spec.replicas) - len(existing)
    taken = {pod.name for pod in own}
    created = [
        templates.pod(owner, template, names.fresh_of(owner, f"{owner.name}-", taken))
        for _ in range(missing)
    ]
    return ControllerActions(created, _in_deletion_order(existing)[: max(0, -missing)])


def _replica_set(deployment: Deployment, template: PodTemplateSpec, count: int) -> ReplicaSet:
    letters = templates.template_hash(msgspec.json.encode(template).decode())
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
    return 1 if replicas is None else max(0, replicas)


def _in_deletion_order(pods: list[Pod]) -> list[Pod]:
    """Pods without a node first, then those not running yet, then the newest."""
    newest_first = list(reversed(pods))
    return sorted(
        newest_first, key=lambda pod: (bool(pod.node_name), pod.status.phase == "Running")
    )
