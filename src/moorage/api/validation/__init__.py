"""Validation of objects: one set of rules for files, `simulate`, `explain` and `serve`.

The rules and their texts are those of an API server. They read plain objects, one file per family
of kinds, and yield an error per violation. An object may have its defaults or not.
"""

from collections.abc import Callable

from moorage.api.schema import messages
from moorage.api.validation import jobs, limits, names, pods, services, volumes, workloads
from moorage.api.validation.amounts import readable
from moorage.api.validation.field_errors import FieldError, FieldErrors, Fields, mapping
from moorage.api.validation.quantities import quantities
from moorage.api.validation.updates import validate_update

_RULES: dict[str, Callable[[Fields], FieldErrors]] = {
    "Pod": pods.validate_pod,
    "Deployment": workloads.validate_deployment,
    "ReplicaSet": workloads.validate_replica_set,
    "DaemonSet": workloads.validate_daemon_set,
    "StatefulSet": workloads.validate_stateful_set,
    "ReplicationController": workloads.validate_replication_controller,
    "Job": jobs.validate_job,
    "CronJob": jobs.validate_cron_job,
    "Service": services.validate_service,
    "ConfigMap": services.validate_config_map,
    "Secret": services.validate_secret,
    "Lease": services.validate_lease,
    "Node": services.validate_node,
    "PersistentVolumeClaim": volumes.validate_claim,
    "PersistentVolume": volumes.validate_volume,
    "StorageClass": volumes.validate_storage_class,
    "CSIDriver": volumes.validate_csi_driver,
    "CSINode": volumes.validate_csi_node,
    "CSIStorageCapacity": volumes.validate_capacity,
    "VolumeAttachment": volumes.validate_attachment,
    "PodDisruptionBudget": limits.validate_budget,
    "PriorityClass": limits.validate_priority_class,
    "ResourceQuota": limits.validate_quota,
    "LimitRange": limits.validate_limit_range,
    "RuntimeClass": limits.validate_runtime_class,
}

__all__ = [
    "FieldError",
    "quantities",
    "readable",
    "validate",
    "validate_metadata",
    "validate_spec",
    "validate_update",
]


def validate(kind: str, obj: Fields) -> list[FieldError]:
    """The errors of an object."""
    return [*validate_metadata(kind, obj), *validate_spec(kind, obj)]


def validate_metadata(kind: str, obj: Fields) -> FieldErrors:
    """The errors of the metadata."""
    version = obj.get("apiVersion")
    built_in = version is None or messages.message_of(str(version), kind) is not None
    return names.metadata(kind, mapping(obj, "metadata"), is_built_in=built_in)


def validate_spec(kind: str, obj: Fields) -> FieldErrors:
    """The errors of everything but the metadata."""
    rules = _RULES.get(kind)
    return iter(()) if rules is None else rules(obj)
