"""Which kinds are watched, and for whom."""

from collections.abc import Mapping
from typing import Any

from moorage.api.kinds import KINDS, Kind

VOLUMES = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
SPREADING = ("PodTopologySpread",)
CLAIMS = ("DynamicResources",)

# Priorities are resolved by the API server when a pod is created.
NOT_WATCHED = ("PriorityClass",)
# A scheduler that does not see these must not act: it would fill nodes that are full.
INDISPENSABLE = ("Node", "Pod")

# Which of our own plugins read a kind. A kind that is not here is watched in any case.
READERS: dict[str, tuple[str, ...]] = {
    "Service": SPREADING,
    "ReplicationController": SPREADING,
    "ReplicaSet": SPREADING,
    "StatefulSet": SPREADING,
    "PodDisruptionBudget": ("DefaultPreemption",),
    "PersistentVolume": VOLUMES,
    "PersistentVolumeClaim": VOLUMES,
    "StorageClass": VOLUMES,
    "CSINode": ("NodeVolumeLimits", "VolumeBinding"),
    "CSIDriver": ("NodeVolumeLimits", "VolumeBinding"),
    "CSIStorageCapacity": ("VolumeBinding",),
    "VolumeAttachment": ("NodeVolumeLimits",),
    "ResourceClaim": CLAIMS,
    "ResourceSlice": CLAIMS,
    "DeviceClass": CLAIMS,
    "Namespace": ("InterPodAffinity",),
}

OUR_MODULES = "moorage.plugins."


def watched(plugins: Mapping[str, type[Any]]) -> list[tuple[Kind, tuple[str, ...]]]:
    """The kinds that these plugins need, each with those who need it; pods come last.

    Of a plugin that is not ours nobody knows what it reads, so it gets everything.
    """
    others = tuple(n for n, cls in plugins.items() if not cls.__module__.startswith(OUR_MODULES))
    found = []
    for kind in KINDS.values():
        readers = tuple(name for name in READERS.get(kind.name, ()) if name in plugins)
        if kind.name in NOT_WATCHED and not others:
            continue
        if kind.name in READERS and not readers and not others:
            continue
        found.append((kind, readers + others))
    return found
