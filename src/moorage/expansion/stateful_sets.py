"""StatefulSets: pods with ordinals, each with claims of its own.

    OrderedReady    the lowest missing pod is created when all pods below it run; after that surplus
                    pods are deleted, the highest first, each when the one above it is deleted
    Parallel        missing pods are created and surplus pods deleted at once

With both policies a terminal pod is deleted, and created again when its name is free. A running pod
counts as ready: probes are not simulated.
"""

from collections.abc import Container

from msgspec.structs import replace

from moorage.api import defaults
from moorage.api.meta import KubeObject
from moorage.api.pod import ClaimVolume, Pod, PodSpec, Volume
from moorage.api.storage import PersistentVolumeClaim
from moorage.api.workloads import PodTemplateSpec, StatefulSet
from moorage.expansion import templates
from moorage.expansion.children import Children, ControllerActions, Key

PARALLEL = "Parallel"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def reconcile(owner: StatefulSet, children: Children, *, in_order: bool) -> ControllerActions:
    """Create missing pods, with claims that outlive them, and delete terminal and surplus pods.

    Without `in_order` no pod waits for another, whatever the set's policy is.
    """
    template = owner.spec.template
    if template is None:
        return ControllerActions()
    in_order = in_order and owner.spec.pod_management_policy != PARALLEL
    ordinals = _ordinals(owner)
    own = _pods(owner, children, ordinals)
    created: list[KubeObject] = []
    terminal: list[Pod] = []
    for name, ordinal in ordinals.items():
        pod = own.get(name)
        if pod is None:
            created += [*_claims(owner, ordinal), _pod(owner, template, ordinal)]
        elif pod.is_terminal:
            terminal.append(pod)
        if in_order and not _is_running(pod):
            return ControllerActions(created, terminal)
    surplus = [pod for name, pod in own.items() if name not in ordinals]
    surplus.sort(key=_ordinal, reverse=True)
    deleted = [pod for pod in surplus[: 1 if in_order else None] if not pod.is_terminating]
    return ControllerActions(created, [*terminal, *deleted])


def held_back(owner: StatefulSet, children: Children) -> tuple[str, int] | None:
    """The pod that more pods wait for, and how many these are; None if there are none."""
    if owner.spec.pod_management_policy == PARALLEL:
        return None
    ordinals = _ordinals(owner)
    own = _pods(owner, children, ordinals)
    first = next((name for name in ordinals if not _is_running(own.get(name))), "")
    missing = sum(name not in own and name != first for name in ordinals)
    return (first, missing) if missing else None


def key_by_name(pod: Pod) -> Key:
    """The stateful set that a pod without an owner would belong to by its name."""
    return "StatefulSet", pod.namespace or "default", pod.name.rpartition("-")[0]


def _pods(owner: StatefulSet, children: Children, names: Container[str]) -> dict[str, Pod]:
    # A pod without an owner that has the name of one of the set's pods counts as that pod: a dump
    # may lack owner references, and there cannot be a second pod of that name.
    orphans = [pod for pod in children.orphans_near(owner) if pod.name in names]
    return {pod.name: pod for pod in [*children.of(owner, Pod), *orphans]}


def _ordinals(owner: StatefulSet) -> dict[str, int]:
    """The ordinals by name of pod, the lowest first."""
    spec = owner.spec
    count = 1 if spec.replicas is None else max(0, spec.replicas)
    ordinals = range(spec.ordinals.start, spec.ordinals.start + count)
    return {f"{owner.name}-{ordinal}": ordinal for ordinal in ordinals}


def _is_running(pod: Pod | None) -> bool:
    return pod is not None and pod.status.phase == "Running" and not pod.is_terminating


def _ordinal(pod: Pod) -> int:
    text = pod.name.rpartition("-")[2]
    return int(text) if text.isdecimal() else 0


def _pod(owner: StatefulSet, template: PodTemplateSpec, ordinal: int) -> Pod:
    name = f"{owner.name}-{ordinal}"
    labels = {POD_NAME: name, POD_INDEX: str(ordinal)}
    spec = _with_claims(template.spec, owner, ordinal)
    return templates.pod(owner, template, name, labels=labels, spec=spec)


def _with_claims(spec: PodSpec, owner: StatefulSet, ordinal: int) -> PodSpec:
    """The spec with a volume per claim, which replaces a volume of the same name."""
    own = {
        template.metadata.name: Volume(
            name=template.metadata.name,
            persistent_volume_claim=ClaimVolume(
                claim_name=f"{template.metadata.name}-{owner.name}-{ordinal}"
            ),
        )
        for template in owner.spec.volume_claim_templates
    }
    if not own:
        return spec
    others = (volume for volume in spec.volumes if volume.name not in own)
    return replace(spec, volumes=(*own.values(), *others))


def _claims(owner: StatefulSet, ordinal: int) -> list[PersistentVolumeClaim]:
    return [
        PersistentVolumeClaim(
            api_version="v1",
            kind="PersistentVolumeClaim",
            metadata=replace(
                template.metadata,
                name=f"{template.metadata.name}-{owner.name}-{ordinal}",
                namespace=defaults.identity(owner).namespace,
            ),
            spec=template.spec,
        )
        for template in owner.spec.volume_claim_templates
    ]
