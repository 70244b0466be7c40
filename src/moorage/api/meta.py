"""Object metadata, and the frozen base that every kind shares.

Field names are Kubernetes' own in snake_case; on the wire they are camelCase. Fields that no part
of Moorage reads are skipped when an object is decoded, not kept.
"""

from typing import Annotated, NewType, dataclass_transform

from msgspec import Meta, Struct, field

PodUID = NewType("PodUID", str)
NodeName = NewType("NodeName", str)

# Go's widths: what does not fit there is refused here, not met later by an array of int64.
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


# Type checkers do not see that subclasses are frozen too, unless told.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Data(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Immutable data from a wire or a manifest.

    Nothing in it can form a cycle, so the garbage collector need not look at it.
    """


class OwnerReference(Data):
    """Who made this object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Data):
    """Name, labels, versions and times of an object; times are RFC 3339 text."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class KubeObject(Data):
    """What every kind has; a cluster-scoped object's namespace is empty."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name of a cluster-scoped object."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if any."""
        for owner in self.metadata.owner_references:
            if owner.controller:
                return owner
        return None


class LabelSelectorRequirement(Data):
    """One `matchExpressions` entry."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Data):
    """Labels that have to match; None where it is absent matches nothing, empty matches all."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(Data):
    """One entry of a status' `conditions`."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_probe_time: str | None = None
    observed_generation: Int64 | None = None
