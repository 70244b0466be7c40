"""Where objects have quantities."""

from collections.abc import Iterator

from moorage.api.validation import field_errors as fe
from moorage.api.validation.field_errors import Fields

Amounts = tuple[str, Fields]
"""A path, and quantities by name."""

_TEMPLATES = {
    "Deployment": ("spec",),
    "ReplicaSet": ("spec",),
    "DaemonSet": ("spec",),
    "StatefulSet": ("spec",),
    "ReplicationController": ("spec",),
    "Job": ("spec",),
    "CronJob": ("spec", "jobTemplate", "spec"),
}
_PLAIN = {
    "Node": ("status.capacity", "status.allocatable"),
    "PersistentVolume": ("spec.capacity",),
    "PersistentVolumeClaim": ("spec.resources.requests", "status.capacity"),
    "ResourceQuota": ("spec.hard", "status.hard", "status.used"),
    "RuntimeClass": ("overhead.podFixed",),
    "Queue": ("spec.guaranteed", "spec.max"),
    "ElasticQuota": ("spec.min", "spec.max"),
}
_LIMITS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_SIZES = ("capacity", "maximumVolumeSize")


def quantities(kind: str, obj: Fields) -> Iterator[Amounts]:
    """All quantities of an object."""
    if kind == "Pod":
        yield from _of_pod(fe.mapping(obj, "spec"), "spec")
        yield from _of_pod_status(fe.mapping(obj, "status"))
    elif steps := _TEMPLATES.get(kind):
        holder = _at(obj, steps)
        path = ".".join(steps)
        template = fe.mapping(holder, "template")
        yield from _of_pod(fe.mapping(template, "spec"), f"{path}.template.spec")
        for i, claim in enumerate(fe.items(holder, "volumeClaimTemplates")):
            here = f"{path}.volumeClaimTemplates[{i}].spec.resources"
            yield from _both(_at(claim, ("spec", "resources")), here)
    elif kind == "LimitRange":
        for i, limit in enumerate(fe.items(fe.mapping(obj, "spec"), "limits")):
            for field in _LIMITS:
                yield f"spec.limits[{i}].{field}", fe.mapping(limit, field)
    elif kind == "CSIStorageCapacity":
        yield "", {name: obj[name] for name in _SIZES if fe.is_set(obj, name)}
    for path in _PLAIN.get(kind, ()):
        yield path, _at(obj, tuple(path.split(".")))


def _at(obj: Fields, steps: tuple[str, ...]) -> Fields:
    for step in steps:
        obj = fe.mapping(obj, step)
    return obj


def _of_pod(spec: Fields, path: str) -> Iterator[Amounts]:
    # Most pods have few of these fields.
    if "overhead" in spec:
        yield f"{path}.overhead", fe.mapping(spec, "overhead")
    if "resources" in spec:
        yield from _both(fe.mapping(spec, "resources"), f"{path}.resources")
    for field in ("containers", "initContainers"):
        for i, container in enumerate(fe.items(spec, field)):
            if resources := fe.mapping(container, "resources"):
                yield from _both(resources, f"{path}.{field}[{i}].resources")
    for i, volume in enumerate(fe.items(spec, "volumes")):
        if "ephemeral" in volume:
            steps = ("ephemeral", "volumeClaimTemplate", "spec", "resources")
            yield from _both(_at(volume, steps), f"{path}.volumes[{i}].{'.'.join(steps)}")


def _of_pod_status(status: Fields) -> Iterator[Amounts]:
    if "resources" in status:
        yield from _both(fe.mapping(status, "resources"), "status.resources")
    if "allocatedResources" in status:
        yield "status.allocatedResources", fe.mapping(status, "allocatedResources")
    for field in ("containerStatuses", "initContainerStatuses"):
        for i, each in enumerate(fe.items(status, field)):
            path = f"status.{field}[{i}]"
            if "resources" in each:
                yield from _both(fe.mapping(each, "resources"), f"{path}.resources")
            if "allocatedResources" in each:
                yield f"{path}.allocatedResources", fe.mapping(each, "allocatedResources")


def _both(resources: Fields, path: str) -> Iterator[Amounts]:
    for field in ("requests", "limits"):
        if field in resources:
            yield f"{path}.{field}", fe.mapping(resources, field)
