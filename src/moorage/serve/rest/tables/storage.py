"""Volumes, claims, classes and drivers."""

from typing import Any

from moorage.api.defaults import IS_DEFAULT_CLASS
from moorage.serve.controllers.objects import Object
from moorage.serve.rest.tables import cells
from moorage.serve.rest.tables.cells import UNSET, Column, at, text, wide

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
VOLUME_COLUMNS = (
    Column("Capacity"),
    Column("Access Modes"),
    Column("Reclaim Policy"),
    Column("Status"),
    Column("Claim"),
    Column("StorageClass"),
    Column("VolumeAttributesClass"),
    Column("Reason"),
    Column("Age"),
    wide("VolumeMode"),
)
CLAIM_COLUMNS = (
    Column("Status"),
    Column("Volume"),
    Column("Capacity"),
    Column("Access Modes"),
    Column("StorageClass"),
    Column("VolumeAttributesClass"),
    Column("Age"),
    wide("VolumeMode"),
)
CLASS_COLUMNS = (
    Column("Provisioner"),
    Column("ReclaimPolicy"),
    Column("VolumeBindingMode"),
    Column("AllowVolumeExpansion", "boolean"),
    Column("Age"),
)
CSI_NODE_COLUMNS = (Column("Drivers", "integer"), Column("Age"))
CSI_DRIVER_COLUMNS = (
    Column("AttachRequired", "boolean"),
    Column("PodInfoOnMount", "boolean"),
    Column("StorageCapacity", "boolean"),
    Column("Age"),
)
ATTACHMENT_COLUMNS = (
    Column("Attacher"),
    Column("PV"),
    Column("Node"),
    Column("Attached", "boolean"),
    Column("Age"),
)


def _age(obj: Object, now: float) -> str:
    return cells.age(at(obj, "metadata", "creationTimestamp"), now)


def _modes(value: Any) -> str:
    return ",".join(_MODES.get(str(each), str(each)) for each in value) if value else ""


def volume(obj: Object, now: float) -> list[Any]:
    """A volume's cells."""
    claim = at(obj, "spec", "claimRef")
    deleting = at(obj, "metadata", "deletionTimestamp")
    return [
        text(obj, "spec", "capacity", "storage"),
        _modes(at(obj, "spec", "accessModes")),
        text(obj, "spec", "persistentVolumeReclaimPolicy"),
        "Terminating" if deleting else text(obj, "status", "phase"),
        f"{text(claim, 'namespace')}/{text(claim, 'name')}" if isinstance(claim, dict) else "",
        text(obj, "spec", "storageClassName"),
        text(obj, "spec", "volumeAttributesClassName", otherwise=UNSET),
        text(obj, "status", "reason"),
        _age(obj, now),
        text(obj, "spec", "volumeMode", otherwise=UNSET),
    ]


def claim(obj: Object, now: float) -> list[Any]:
    """A claim's cells."""
    bound = bool(text(obj, "spec", "volumeName"))
    deleting = at(obj, "metadata", "deletionTimestamp")
    return [
        "Terminating" if deleting else text(obj, "status", "phase"),
        text(obj, "spec", "volumeName"),
        text(obj, "status", "capacity", "storage") if bound else "",
        _modes(at(obj, "status", "accessModes")) if bound else "",
        text(obj, "spec", "storageClassName"),
        text(obj, "spec", "volumeAttributesClassName", otherwise=UNSET),
        _age(obj, now),
        text(obj, "spec", "volumeMode", otherwise=UNSET),
    ]


def class_name(obj: Object) -> str:
    """A class' name; the default one is marked."""
    annotations = at(obj, "metadata", "annotations") or {}
    is_default = any(annotations.get(each) == "true" for each in IS_DEFAULT_CLASS)
    return text(obj, "metadata", "name") + (" (default)" if is_default else "")


def storage_class(obj: Object, now: float) -> list[Any]:
    """A storage class' cells."""
    return [
        text(obj, "provisioner"),
        text(obj, "reclaimPolicy", otherwise="Delete"),
        text(obj, "volumeBindingMode", otherwise="Immediate"),
        at(obj, "allowVolumeExpansion") is True,
        _age(obj, now),
    ]


def csi_node(obj: Object, now: float) -> list[Any]:
    """A CSI node's cells."""
    return [len(cells.maps(obj, "spec", "drivers")), _age(obj, now)]


def csi_driver(obj: Object, now: float) -> list[Any]:
    """A CSI driver's cells."""
    fields = ("attachRequired", "podInfoOnMount", "storageCapacity")
    return [*(at(obj, "spec", field) is True for field in fields), _age(obj, now)]


def attachment(obj: Object, now: float) -> list[Any]:
    """An attachment's cells."""
    return [
        text(obj, "spec", "attacher"),
        text(obj, "spec", "source", "persistentVolumeName"),
        text(obj, "spec", "nodeName"),
        at(obj, "status", "attached") is True,
        _age(obj, now),
    ]
