"""All shapes by name. A new one is a function with `@shape` in one of the imported modules."""

from moorage.bench import basic, devices, gangs, pod_affinity, volumes
from moorage.bench.workload import SHAPES, Shape, Workload

__all__ = ["SHAPES", "Shape", "Workload", "basic", "devices", "gangs", "pod_affinity", "volumes"]
