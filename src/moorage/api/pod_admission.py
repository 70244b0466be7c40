"""Admission without an API server: what limit ranges and runtime classes change and refuse.

The rules are those of `limit_ranges` and `runtime_classes`, which `serve` applies to requests.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from moorage.api import limit_ranges, runtime_classes
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.policy import LimitRange, RuntimeClass
from moorage.api.storage import PersistentVolumeClaim
from moorage.errors import AdmissionError


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
        """A new pod or claim as admission changes it; raises AdmissionError if it is refused.

        A pod whose class is not among the objects keeps its spec.
        """
        if not (self._ranges or self._classes) or obj.uid:
            return obj
        ranges = self._ranges.get(obj.namespace or "default", [])
        if isinstance(obj, PersistentVolumeClaim) and ranges:
            violated = limit_ranges.claim_violations(msgspec.to_builtins(obj), ranges)
            _check(obj, limit_ranges.refusal(violated))
        return self._admit_pod(obj, ranges) if isinstance(obj, Pod) else obj

    def _admit_pod(self, pod: Pod, ranges: list[dict[str, Any]]) -> Pod:
        runtime_class = self._classes.get(pod.spec.runtime_class_name)
        if not ranges and runtime_class is None:
            return pod
        plain: dict[str, Any] = msgspec.to_builtins(pod)
        spec = plain.setdefault("spec", {})
        for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
            resources = container.setdefault("resources", {})
            if limits := resources.get("limits"):
                resources["requests"] = {**limits, **resources.get("requests", {})}
        limit_ranges.set_defaults(plain, ranges)
        if runtime_class is not None:
            _check(pod, runtime_classes.apply(spec, runtime_class))
        _check(pod, limit_ranges.refusal(limit_ranges.violations(plain, ranges)))
        return msgspec.convert(plain, Pod)


def _check(obj: KubeObject, why: str) -> None:
    if why:
        subject = f"{type(obj).__name__} {obj.namespace or 'default'}/{obj.name}"
        raise AdmissionError(subject, why)
