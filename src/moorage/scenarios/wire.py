"""Scenario, as it is written. Times are durations since the start: `90s`, `1h30m`, or seconds."""

from typing import Annotated, Any

from msgspec import Meta, field

from moorage.api.meta import Data, KubeObject
from moorage.api.node import MAX_POOL_NODES, NodePoolTemplate
from moorage.api.workloads import PodTemplateSpec

Duration = str | float
Count = Annotated[int, Meta(ge=1, le=1_000_000)]


class Own(Data, forbid_unknown_fields=True):
    """A part that is Moorage's own, so that what is not known is a typing mistake."""


class RateSpec(Own):
    """How often pods arrive; by chance, or evenly."""

    per_hour: Annotated[float, Meta(gt=0)]
    distribution: str = "poisson"


class LifetimeSpec(Own):
    """How long a pod runs once it has started; one of these."""

    fixed: Duration | None = None
    exponential: Duration | None = None
    uniform: tuple[Duration, Duration] | None = None


class ArrivalsSpec(Own):
    """Pods of one template that arrive at a rate, or at given times."""

    name: str
    template: PodTemplateSpec
    rate: RateSpec | None = None
    at: tuple[Duration, ...] | None = None
    count: Count = 1
    start: Duration = 0.0
    end: Duration | None = None
    lifetime: LifetimeSpec | None = None
    replace: bool = True


class ScaleSpec(Own, kw_only=True):
    """A workload gets another number of replicas."""

    kind: str = "Deployment"
    namespace: str = "default"
    name: str
    replicas: Annotated[int, Meta(ge=0, le=1_000_000)]


class NodesSpec(Own):
    """Nodes by name or by label; with a count, so many of them by lot. `for`: how long."""

    nodes: tuple[str, ...] | None = None
    selector: str | None = None
    count: Count | None = None
    for_: Duration | None = field(name="for", default=None)


class AddNodesSpec(Own):
    """More nodes of a pool; one that is not there yet needs a template."""

    pool: str
    count: Annotated[int, Meta(ge=1, le=MAX_POOL_NODES)]
    template: NodePoolTemplate | None = None
    zones: tuple[str, ...] = ()


class DeleteSpec(Own, kw_only=True):
    """An object is deleted."""

    kind: str
    namespace: str = "default"
    name: str


class EventSpec(Own):
    """Something happens at a time; one of these."""

    at: Duration
    scale: ScaleSpec | None = None
    drain: NodesSpec | None = None
    fail: NodesSpec | None = None
    add_nodes: AddNodesSpec | None = None
    create: tuple[dict[str, Any], ...] | None = None
    delete: DeleteSpec | None = None


class ScenarioSpec(Own):
    duration: Duration
    seed: int = 0
    sample: Duration | None = None
    arrivals: tuple[ArrivalsSpec, ...] = ()
    events: tuple[EventSpec, ...] = ()


class Scenario(KubeObject, kw_only=True):
    """A cluster's day."""

    spec: ScenarioSpec
