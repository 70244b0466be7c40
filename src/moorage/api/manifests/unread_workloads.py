"""Workloads of other controllers: objects of kinds that are not read, with the pods that they want.

A pod template is recognized by its shape, because the kinds are not known: an Argo Rollout, a
PyTorchJob, a Prometheus.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

# Fields beside a template that say how many pods there are of it.
COUNTS = ("replicas", "parallelism")


class UnreadWorkload(NamedTuple):
    """An object whose pods are not created; `pods` is None if their number cannot be read."""

    api_version: str
    kind: str
    namespace: str
    name: str
    pods: int | None

    def to_dict(self) -> dict[str, Any]:
        """The object as plain data."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "pods": self.pods,
        }


def find(api_version: str, kind: str, document: Mapping[str, Any]) -> UnreadWorkload | None:
    """The workload in a document of a kind that is not read, if it looks like one."""
    spec = document.get("spec")
    if not isinstance(spec, Mapping):
        return None
    counts = list(_templates(spec, 1))
    replicas = _number(spec.get("replicas"))
    if not counts and replicas is None:
        return None
    if not counts:  # With a template of something else, replicas are no pods.
        counts = [None if "template" in spec else replicas]
    pods = None if None in counts else sum(filter(None, counts))
    meta = document.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    namespace, name = meta.get("namespace") or "default", meta.get("name") or ""
    return UnreadWorkload(api_version, kind, str(namespace), str(name), pods)


def _templates(value: object, copies: int) -> Iterator[int | None]:
    """For each pod template in a value, how many pods it makes; None if that is not stated."""
    if isinstance(value, list):
        for each in value:
            yield from _templates(each, copies)
    if not isinstance(value, Mapping):
        return
    stated = [number for name in COUNTS if (number := _number(value.get(name))) is not None]
    for key, part in value.items():
        if _is_pod_template(part):
            yield copies * stated[0] if key == "template" and stated else None
        else:
            yield from _templates(part, copies * stated[0] if stated else copies)


def _is_pod_template(value: object) -> bool:
    spec = value.get("spec") if isinstance(value, Mapping) else None
    return isinstance(spec, Mapping) and isinstance(spec.get("containers"), list)


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value
