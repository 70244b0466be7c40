"""Scenario, as it is written in a file. Times since the start are durations: `90s`, `1h30m`, 90."""

from typing import Annotated, Any

from msgspec import Meta, field

from moorage.api.meta import Data, KubeObject
from moorage.api.node import MAX_POOL_NODES, NodePoolTemplate, PoolDevices
from moorage.api.workloads import PodTemplateSpec

Duration = str | float
Count = Annotated[int, Meta(ge=1, le=1_000_000)]


class StrictData(Data, forbid_unknown_fields=True):
    """A struct that Moorage defines, so that an unknown field is a mistake."""


class RateSpec(StrictData):
    """How often pods arrive; at random, or evenly."""

    per_hour: Annotated[float, Meta(gt=0)]
    distribution: str = "poisson"


class LifetimeSpec(StrictData):
    """How long a pod runs once it has started; one of these."""

    fixed: Duration | None = None
    exponential: Duration | None = None
    uniform: tuple[Duration, Duration] | None = None


class ArrivalsSpec(StrictData):
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
    # Whether the pods that arrive together are a gang, with a PodGroup of their own.
    gang: bool = False


class ScaleAction(StrictData, kw_only=True):
    """Change the number of replicas of a workload."""

    kind: str = "Deployment"
    namespace: str = "default"
    name: str
    replicas: Annotated[int, Meta(ge=0, le=1_000_000)]


class NodesSpec(StrictData):
    """Nodes by name or by label; with a count, so many of them at random. `for`: how long."""

    nodes: tuple[str, ...] | None = None
    selector: str | None = None
    count: Count | None = None
    for_: Duration | None = field(name="for", default=None)


class AddNodesSpec(StrictData):
    """More nodes of a pool; a new pool needs a template."""

    pool: str
    count: Annotated[int, Meta(ge=1, le=MAX_POOL_NODES)]
    template: NodePoolTemplate | None = None
    zones: tuple[str, ...] = ()
    devices: tuple[PoolDevices, ...] = ()


class DeleteAction(StrictData, kw_only=True):
    """Delete an object."""

    kind: str
    namespace: str = "default"
    name: str


class EventSpec(StrictData):
    """An action at a time; one of these."""

    at: Duration
    scale: ScaleAction | None = None
    drain: NodesSpec | None = None
    fail: NodesSpec | None = None
    add_nodes: AddNodesSpec | None = None
    create: tuple[dict[str, Any], ...] | None = None
    apply: tuple[dict[str, Any], ...] | None = None
    delete: DeleteAction | None = None


class ScenarioSpec(StrictData):
    duration: Duration
    seed: int = 0
    sample: Duration | None = None
    arrivals: tuple[ArrivalsSpec, ...] = ()
    events: tuple[EventSpec, ...] = ()


class Scenario(KubeObject, kw_only=True):
    """A cluster's day."""

    spec: ScenarioSpec
