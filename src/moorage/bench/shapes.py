"""All shapes by name. A new one is a function with `@shape` on top, in one of the families."""

from moorage.bench import alone, churning, crowded, neighbours, storage
from moorage.bench.workload import SHAPES, Shape, Workload

__all__ = ["SHAPES", "Shape", "Workload", "alone", "churning", "crowded", "neighbours", "storage"]
