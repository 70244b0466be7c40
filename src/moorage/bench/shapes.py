"""All shapes by name. A new one is a function with `@shape` in one of the imported modules."""

from moorage.bench import basic, devices, gangs, pod_affinity, volumes
from moorage.bench.workload import SHAPES, BenchLoad, Shape

__all__ = ["SHAPES", "BenchLoad", "Shape", "basic", "devices", "gangs", "pod_affinity", "volumes"]
