"""Workload: what is measured; and Shape: a named way of making workloads."""

from collections.abc import Callable
from dataclasses import dataclass, field

from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod


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


@dataclass(frozen=True, slots=True)
class Shape:
    """A named way of making workloads, and how many pods of it take about a second or two."""

    name: str
    summary: str
    pods: int
    make: Callable[[int, int, int], Workload] = field(repr=False)


SHAPES: dict[str, Shape] = {}


def shape(pods: int) -> Callable[[Callable[[int, int, int], Workload]], Shape]:
    """Register a function of (nodes, initial, pods) under its name, its docstring as summary."""

    def register(make: Callable[[int, int, int], Workload]) -> Shape:
        name = make.__name__.replace("_", "-")
        summary = (make.__doc__ or "").strip().splitlines()[0]
        SHAPES[name] = Shape(name, summary, pods, make)
        return SHAPES[name]

    return register
