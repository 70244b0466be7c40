"""Admission of pods without an API server: what limit ranges and runtime classes change.

The rules are those of `limit_ranges` and `runtime_classes`, which `serve` applies to requests.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from moorage.api import limit_ranges, runtime_classes
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.policy import LimitRange, RuntimeClass
from moorage.errors import ManifestError


class PodAdmission:
    """The limit ranges by namespace, and the runtime classes by name."""

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        self._ranges: dict[str, list[dict[str, Any]]] = {}
        self._classes: dict[str, dict[str, Any]] = {}
        for obj in objects:
            if isinstance(obj, LimitRange):
                plain = limit_ranges.with_defaults(msgspec.to_builtins(obj))
                self._ranges.setdefault(obj.namespace or "default", []).append(plain)
            elif isinstance(obj, RuntimeClass):
                self._classes[obj.name] = msgspec.to_builtins(obj)

    def admit(self, obj: KubeObject) -> KubeObject:
        """A new pod as admission changes it; raises ManifestError for one that it refuses.

        A pod that a controller made is not refused: a run would end with it. A pod whose class is
        not among the objects keeps its spec.
        """
        if not (self._ranges or self._classes) or not isinstance(obj, Pod) or obj.uid:
            return obj
        ranges = self._ranges.get(obj.namespace or "default", [])
        runtime_class = self._classes.get(obj.spec.runtime_class_name)
        if not ranges and runtime_class is None:
            return obj
        plain: dict[str, Any] = msgspec.to_builtins(obj)
        spec = plain.setdefault("spec", {})
        for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
            resources = container.setdefault("resources", {})
            if limits := resources.get("limits"):
                resources["requests"] = {**limits, **resources.get("requests", {})}
        limit_ranges.set_defaults(plain, ranges)
        problems = limit_ranges.violations(plain, ranges)
        if runtime_class is not None and (why := runtime_classes.apply(spec, runtime_class)):
            problems.append(why)
        if problems and obj.controller is None:
            raise ManifestError(f"Pod {obj.namespace or 'default'}/{obj.name}: {problems[0]}")
        return msgspec.convert(plain, Pod)
