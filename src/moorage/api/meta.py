"""Object metadata, selectors, and the frozen base struct of all kinds.

Field names are Kubernetes' own in snake_case; in JSON they are camelCase. Fields that Moorage does
not read are skipped when an object is decoded.
"""

from typing import Annotated, NewType, dataclass_transform

from msgspec import Meta, Struct, field

PodUID = NewType("PodUID", str)
NodeName = NewType("NodeName", str)

# Go's integer types: larger numbers are refused here, because arrays of int64 could not hold them.
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


# Tells type checkers that subclasses are frozen too.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Data(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Immutable data from an API server or a manifest.

    It cannot contain reference cycles, so the garbage collector does not track it.
    """


class OwnerReference(Data):
    """An owner of an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Data):
    """Names, labels, versions and times of an object; times are RFC 3339 text."""

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
    """The fields of every kind; the namespace of a cluster-scoped object is empty."""

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
    """Requirements on labels; an absent selector (None) matches nothing, an empty one all."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelectorTerm(Data):
    """Requirements that must all hold; a term without any matches no node."""

    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    match_fields: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelector(Data):
    """Terms of which one has to match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class Condition(Data):
    """One entry of a status' `conditions`."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_probe_time: str | None = None
    observed_generation: Int64 | None = None
