"""A pod from a controller's template."""

from collections.abc import Mapping

from msgspec.structs import replace

from moorage.api import defaults
from moorage.api.meta import KubeObject, ObjectMeta, OwnerReference
from moorage.api.pod import Pod, PodSpec
from moorage.api.workloads import PodTemplateSpec

NO_LABELS: Mapping[str, str] = {}


def owned_meta(
    owner: KubeObject,
    name: str,
    meta: ObjectMeta,
    labels: Mapping[str, str] = NO_LABELS,
    annotations: Mapping[str, str] = NO_LABELS,
) -> ObjectMeta:
    """Metadata of what an owner makes: the template's labels and annotations, and some more."""
    owner = defaults.identity(owner)
    reference = OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
    )
    return ObjectMeta(
        name=name,
        namespace=owner.namespace,
        labels={**meta.labels, **labels} if labels else meta.labels,
        annotations={**meta.annotations, **annotations} if annotations else meta.annotations,
        owner_references=(reference,),
    )


def pod(
    owner: KubeObject,
    template: PodTemplateSpec,
    name: str,
    *,
    labels: Mapping[str, str] = NO_LABELS,
    annotations: Mapping[str, str] = NO_LABELS,
    spec: PodSpec | None = None,
) -> Pod:
    """A pod that its owner has just made; nobody has scheduled it."""
    return Pod(
        api_version="v1",
        kind="Pod",
        metadata=owned_meta(owner, name, template.metadata, labels, annotations),
        spec=template.spec if spec is None else spec,
    )


def unscheduled(spec: PodSpec) -> PodSpec:
    """A pod's spec without the node that it was given."""
    return replace(spec, node_name="") if spec.node_name else spec
