"""StatefulSets: pods with ordinals, each with claims of its own.

All pods are made at once. A real controller waits for each to be ready before it makes the next,
unless `podManagementPolicy` is Parallel; where they end up is the same, but for the order.
"""

from msgspec.structs import replace

from moorage.api import defaults
from moorage.api.meta import KubeObject
from moorage.api.pod import ClaimVolume, Pod, PodSpec, Volume
from moorage.api.storage import PersistentVolumeClaim
from moorage.api.workloads import PodTemplateSpec, StatefulSet
from moorage.expansion import templates
from moorage.expansion.children import Children, live
from moorage.expansion.wanted import Wanted

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def wanted(owner: StatefulSet, children: Children) -> Wanted:
    """A pod for each ordinal; claims are made with it and outlive it."""
    spec = owner.spec
    if spec.template is None:
        return Wanted()
    count = 1 if spec.replicas is None else max(0, spec.replicas)
    ordinals = range(spec.ordinals.start, spec.ordinals.start + count)
    # A pod of the right name is taken for the set's own, whoever made it: a dump may have lost
    # its owner, and a second one of that name cannot be.
    owned = children.of(owner, Pod)
    names = {f"{owner.name}-{ordinal}" for ordinal in ordinals}
    taken = {pod.name for pod in [*owned, *children.named(owner, names)]}
    made: list[KubeObject] = []
    for ordinal in ordinals:
        name = f"{owner.name}-{ordinal}"
        if name not in taken:
            made += _claims(owner, ordinal)
            made.append(_pod(owner, spec.template, ordinal))
    surplus = [pod for pod in live(owned) if pod.name not in names]
    return Wanted(made=made, surplus=sorted(surplus, key=_ordinal, reverse=True))


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
