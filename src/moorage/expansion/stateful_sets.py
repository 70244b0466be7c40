"""StatefulSets: pods with ordinals, each with claims of its own.

    OrderedReady    the lowest pod that is missing is made once all below it run; after that surplus
                    pods leave, the highest first, each when the one above it is gone
    Parallel        what is missing and what is too much, all at once

Either way a pod that has ended is removed, and made anew when its name is free. A pod that runs
counts as ready: of probes nothing is known here.
"""

from collections.abc import Container

from msgspec.structs import replace

from moorage.api import defaults
from moorage.api.meta import KubeObject
from moorage.api.pod import ClaimVolume, Pod, PodSpec, Volume
from moorage.api.storage import PersistentVolumeClaim
from moorage.api.workloads import PodTemplateSpec, StatefulSet
from moorage.expansion import templates
from moorage.expansion.children import Children, Key
from moorage.expansion.wanted import Wanted

PARALLEL = "Parallel"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def wanted(owner: StatefulSet, children: Children, *, in_order: bool) -> Wanted:
    """The pods that are lacking, with claims that outlive them, and those that have to go.

    Unless it is `in_order`, no pod waits for another, whatever the set's policy.
    """
    template = owner.spec.template
    if template is None:
        return Wanted()
    in_order = in_order and owner.spec.pod_management_policy != PARALLEL
    ordinals = _ordinals(owner)
    own = _pods(owner, children, ordinals)
    made: list[KubeObject] = []
    ended: list[Pod] = []
    for name, ordinal in ordinals.items():
        pod = own.get(name)
        if pod is None:
            made += [*_claims(owner, ordinal), _pod(owner, template, ordinal)]
        elif pod.is_terminal:
            ended.append(pod)
        if in_order and not _is_up(pod):
            return Wanted(made=made, surplus=ended)
    surplus = [pod for name, pod in own.items() if name not in ordinals]
    surplus.sort(key=_ordinal, reverse=True)
    going = [pod for pod in surplus[: 1 if in_order else None] if not pod.is_terminating]
    return Wanted(made=made, surplus=[*ended, *going])


def held_back(owner: StatefulSet, children: Children) -> tuple[str, int] | None:
    """The pod that has to run before more are made, and how many those are; None if none are."""
    if owner.spec.pod_management_policy == PARALLEL:
        return None
    ordinals = _ordinals(owner)
    own = _pods(owner, children, ordinals)
    first = next((name for name in ordinals if not _is_up(own.get(name))), "")
    missing = sum(name not in own and name != first for name in ordinals)
    return (first, missing) if missing else None


def key_by_name(pod: Pod) -> Key:
    """The set that a pod without an owner would be of, going by its name."""
    return "StatefulSet", pod.namespace or "default", pod.name.rpartition("-")[0]


def _pods(owner: StatefulSet, children: Children, names: Container[str]) -> dict[str, Pod]:
    # A pod of the right name is taken for the set's own, whoever made it: a dump may have lost
    # its owner, and a second one of that name cannot be.
    alike = children.named(owner, names)
    return {pod.name: pod for pod in [*children.of(owner, Pod), *alike]}


def _ordinals(owner: StatefulSet) -> dict[str, int]:
    """By the names of their pods, the lowest first."""
    spec = owner.spec
    count = 1 if spec.replicas is None else max(0, spec.replicas)
    ordinals = range(spec.ordinals.start, spec.ordinals.start + count)
    return {f"{owner.name}-{ordinal}": ordinal for ordinal in ordinals}


def _is_up(pod: Pod | None) -> bool:
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
    """The claims take the place of volumes of the same name."""
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
