"""A Table: heads of columns, and a row per object."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from moorage.serve.controllers.objects import Object
from moorage.serve.resources import Resource
from moorage.serve.rest import responses
from moorage.serve.rest.tables import custom, others, pods, storage, workloads
from moorage.serve.rest.tables.cells import Column
from moorage.serve.store import Store


class Printer(NamedTuple):
    """The columns of a kind behind its name, and what fills them."""

    columns: tuple[Column, ...]
    row: Callable[[Object, float], list[Any]]


_NAME = Column("Name", "string")
_PRINTERS: dict[str, Printer] = {
    "Pod": Printer(pods.POD_COLUMNS, pods.pod),
    "Node": Printer(pods.NODE_COLUMNS, pods.node),
    "Deployment": Printer(workloads.DEPLOYMENT_COLUMNS, workloads.deployment),
    "ReplicaSet": Printer(workloads.REPLICA_SET_COLUMNS, workloads.replica_set),
    "ReplicationController": Printer(workloads.REPLICA_SET_COLUMNS, workloads.replica_set),
    "StatefulSet": Printer(workloads.STATEFUL_SET_COLUMNS, workloads.stateful_set),
    "DaemonSet": Printer(workloads.DAEMON_SET_COLUMNS, workloads.daemon_set),
    "Job": Printer(workloads.JOB_COLUMNS, workloads.job),
    "CronJob": Printer(workloads.CRON_JOB_COLUMNS, workloads.cron_job),
    "PodDisruptionBudget": Printer(workloads.BUDGET_COLUMNS, workloads.budget),
    "PersistentVolume": Printer(storage.VOLUME_COLUMNS, storage.volume),
    "PersistentVolumeClaim": Printer(storage.CLAIM_COLUMNS, storage.claim),
    "StorageClass": Printer(storage.CLASS_COLUMNS, storage.storage_class),
    "CSINode": Printer(storage.CSI_NODE_COLUMNS, storage.csi_node),
    "CSIDriver": Printer(storage.CSI_DRIVER_COLUMNS, storage.csi_driver),
    "VolumeAttachment": Printer(storage.ATTACHMENT_COLUMNS, storage.attachment),
    "Namespace": Printer(others.NAMESPACE_COLUMNS, others.namespace),
    "Service": Printer(others.SERVICE_COLUMNS, others.service),
    "Endpoints": Printer(others.ENDPOINTS_COLUMNS, others.endpoints),
    "ConfigMap": Printer(others.DATA_COLUMNS, others.data),
    "Secret": Printer(others.SECRET_COLUMNS, others.secret),
    "Lease": Printer(others.LEASE_COLUMNS, others.lease),
    "PriorityClass": Printer(others.PRIORITY_CLASS_COLUMNS, others.priority_class),
    "CustomResourceDefinition": Printer(others.DEFINITION_COLUMNS, others.definition),
}
_AGE_ONLY = Printer(others.AGE_COLUMNS, others.age)


def table(
    resource: Resource, objects: Sequence[Object], store: Store, now: float, include_object: str
) -> Object:
    """The objects as a Table; `include_object` is None, Metadata or Object."""
    columns, row = _printer(resource, store)
    rows = []
    for obj in objects:
        # A bookmark has a version and no name: it is a table without rows.
        if obj["metadata"].get("name"):
            shown: Object = {"cells": row(obj, now)}
            if include_object == "Metadata":
                shown["object"] = responses.partial_metadata(obj)
            elif include_object == "Object":
                shown["object"] = obj
            rows.append(shown)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": rows,
    }


def _printer(resource: Resource, store: Store) -> Printer:
    """The columns with the name among them."""
    if resource.custom:
        stated = custom.printer_columns(resource, store)
        return _named(
            Printer(custom.columns(stated), lambda obj, now: custom.row(obj, stated, now))
        )
    if resource.kind == "Event":
        return Printer(others.EVENT_COLUMNS, others.event)
    return _named(_PRINTERS.get(resource.kind, _AGE_ONLY))


def _named(printer: Printer) -> Printer:
    def row(obj: Object, now: float) -> list[Any]:
        return [storage.class_name(obj), *printer.row(obj, now)]

    return Printer((_NAME, *printer.columns), row)


def _definition(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": "name" if column is _NAME else "",
        "description": column.description,
        "priority": column.priority,
    }
