"""Workload: what is measured; and Shape: a named way of making workloads."""

from collections.abc import Callable
from dataclasses import dataclass, field

from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core.observations import Observation


@dataclass(frozen=True, slots=True)
class Workload:
    """What is measured: a cluster, pods that it runs already, and pods that want to run."""

    nodes: list[Node]
    initial: list[Pod]
    pods: list[Pod]
    # Namespaces, Services and the like.
    others: list[KubeObject] = field(default_factory=list)
    # How many of the pods fit nowhere; a run has to find exactly these.
    hopeless: int = 0
    # What else happens meanwhile: one of these after every `churn_every` decisions.
    churn: list[Observation] = field(default_factory=list)
    churn_every: int = 1


# Of (nodes, initial, pods).
Make = Callable[[int, int, int], Workload]


@dataclass(frozen=True, slots=True)
class Shape:
    """A named way of making workloads, and how many pods of it take about a second or two."""

    name: str
    summary: str
    pods: int
    make: Make = field(repr=False)
    # The same without what the shape is about, for a shape whose figure says little by itself.
    without: Make | None = field(default=None, repr=False)


SHAPES: dict[str, Shape] = {}


def shape(pods: int, without: Make | None = None) -> Callable[[Make], Shape]:
    """Register a function of (nodes, initial, pods) under its name, its docstring as summary."""

    def register(make: Make) -> Shape:
        name = make.__name__.replace("_", "-")
        summary = (make.__doc__ or "").strip().splitlines()[0]
        SHAPES[name] = Shape(name, summary, pods, make, without)
        return SHAPES[name]

    return register
