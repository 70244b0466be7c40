"""The columns of kinds that are stored and shown, and that nothing here acts upon."""

from collections.abc import Sequence
from typing import Any

from moorage.controllers.objects import Object, value_at
from moorage.serve.rest.tables import cells
from moorage.serve.rest.tables.cells import NONE, UNKNOWN, UNSET, maps, text
from moorage.serve.rest.tables.column import (
    TableColumn,
    count_column,
    declared_text,
    integer_column,
    path_cell,
    text_column,
    wide,
)
from moorage.serve.rest.tables.columns import AGE, CREATED_AT

_SHOWN = 3  # items of a list in one cell


def _with_more(items: Sequence[str], empty: str, count: int = 0) -> str:
    """The first items of a list, and the number of the others."""
    more = (count or len(items)) - _SHOWN
    shown = ",".join(items[:_SHOWN]) or empty
    return f"{shown} + {more} more..." if more > 0 and len(items) > _SHOWN else shown


def _texts(obj: Any, *path: str) -> list[str]:
    found = value_at(obj, *path)
    return [str(each) for each in found] if isinstance(found, list) else []


def _quota(obj: Object, *, limits: bool) -> str:
    hard, used = value_at(obj, "status", "hard") or {}, value_at(obj, "status", "used") or {}
    return ", ".join(
        f"{name}: {used.get(name, '0')}/{hard[name]}"
        for name in sorted(hard)
        if name.startswith("limits.") == limits
    )


def _controller(obj: Object, _now: float) -> str:
    for owner in maps(obj, "metadata", "ownerReferences"):
        if owner.get("controller") is True:
            group = text(owner, "apiVersion").rpartition("/")[0]
            kind = text(owner, "kind").lower()
            return f"{kind}.{group}/{text(owner, 'name')}" if group else f"{kind}/{owner['name']}"
    return NONE


def _role(obj: Object, _now: float) -> str:
    return f"{text(obj, 'roleRef', 'kind')}/{text(obj, 'roleRef', 'name')}"


def _subjects(kind: str) -> TableColumn:
    def cell(obj: Object, _now: float) -> str:
        found = [each for each in maps(obj, "subjects") if each.get("kind") == kind]
        spaced = kind == "ServiceAccount"
        names = (f"{text(each, 'namespace')}/" * spaced + text(each, "name") for each in found)
        return ", ".join(names)

    return wide(TableColumn(f"{kind}s", cell))


def _hosts(obj: Object, _now: float) -> str:
    rules = maps(obj, "spec", "rules")
    return _with_more([text(each, "host") for each in rules if each.get("host")], "*", len(rules))


def _ingress_addresses(obj: Object, _now: float) -> str:
    found = maps(obj, "status", "loadBalancer", "ingress")
    return ",".join(sorted({text(each, "ip") or text(each, "hostname") for each in found}))


def _parameters(obj: Object, _now: float) -> str:
    found = value_at(obj, "spec", "parameters")
    if not isinstance(found, dict):
        return NONE
    group = f".{found['apiGroup']}" if found.get("apiGroup") else ""
    return f"{text(found, 'kind')}{group}/{text(found, 'name')}"


def _slice_ports(obj: Object, _now: float) -> str:
    ports = maps(obj, "ports")
    return _with_more([str(each.get("port") or each.get("name") or "*") for each in ports], UNSET)


def _slice_addresses(obj: Object, _now: float) -> str:
    found = [address for each in maps(obj, "endpoints") for address in _texts(each, "addresses")]
    return _with_more(found, UNSET)


def _target(obj: Object, _now: float) -> str:
    kind, name = (text(obj, "spec", "scaleTargetRef", each) for each in ("kind", "name"))
    return f"{kind}/{name}"


def _metrics(obj: Object, _now: float) -> str:
    """The targets of an autoscaler. Nothing measures here, so current values are unknown."""
    shown = []
    for metric in maps(obj, "spec", "metrics"):
        kind = text(metric, "type")
        source = metric.get(kind[:1].lower() + kind[1:]) or {}
        target = source.get("target") or {}
        percent = target.get("averageUtilization")
        wanted = f"{percent}%" if percent is not None else ""
        wanted = wanted or text(target, "averageValue") or text(target, "value")
        name = f"{text(source, 'name')}: " if kind == "Resource" else ""
        shown.append(f"{name}{UNKNOWN}/{wanted}")
    if not shown:
        return NONE
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + more


def _pod_labels(obj: Object, _now: float) -> str:
    labels = value_at(obj, "template", "metadata", "labels") or {}
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or NONE


def _containers(field: str) -> TableColumn:
    def cell(obj: Object, _now: float) -> str:
        found = maps(obj, "template", "spec", "containers")
        return ",".join(text(each, field) for each in found)

    return TableColumn("Containers" if field == "name" else "Images", cell)


def _parent(obj: Object, _now: float) -> str:
    found = value_at(obj, "spec", "parentRef")
    if not isinstance(found, dict):
        return NONE
    resource = ".".join(filter(None, (text(found, "resource"), text(found, "group")))).lower()
    return "/".join(filter(None, (resource, text(found, "namespace"), text(found, "name"))))


def _request_state(obj: Object, _now: float) -> str:
    found = [text(each, "type") for each in maps(obj, "status", "conditions")]
    states: list[str] = [each for each in ("Approved", "Denied") if each in found]
    states = states or ["Pending"]
    states += ["Failed"] if "Failed" in found else []
    states += ["Issued"] if value_at(obj, "status", "certificate") else []
    return ",".join(states)


def _missing_level(obj: Object, _now: float) -> str:
    return text(cells.condition(obj, "Dangling"), "status", default="?")


def _service(obj: Object, _now: float) -> str:
    found = value_at(obj, "spec", "service")
    named = isinstance(found, dict)
    return f"{text(found, 'namespace')}/{text(found, 'name')}" if named else "Local"


def _available(obj: Object, _now: float) -> str:
    found = cells.condition(obj, "Available")
    status, reason = text(found, "status", default="Unknown"), text(found, "reason")
    return f"{status} ({reason})" if status == "False" and reason else status


def _value(name: str, path: str) -> TableColumn:
    """A value of any type; absent ones are shown as such."""
    found = path_cell(path, value_at)
    return TableColumn(name, lambda obj, now: NONE if (v := found(obj, now)) is None else v)


_BINDING = (
    TableColumn("Role", _role),
    AGE,
    *(_subjects(kind) for kind in ("User", "Group", "ServiceAccount")),
)
_QUEUING = "spec.limited.limitResponse.queuing"
_WEBHOOKS = (count_column("Webhooks", "webhooks"), AGE)

STORED_KIND_COLUMNS: dict[str, tuple[TableColumn, ...]] = {
    "ResourceQuota": (
        TableColumn("Request", lambda obj, now: _quota(obj, limits=False)),
        TableColumn("Limit", lambda obj, now: _quota(obj, limits=True)),
        AGE,
    ),
    "LimitRange": (CREATED_AT,),
    "ControllerRevision": (
        TableColumn("Controller", _controller),
        declared_text(integer_column("Revision", "revision")),
        AGE,
    ),
    "Role": (CREATED_AT,),
    "ClusterRole": (CREATED_AT,),
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "Ingress": (
        text_column("Class", "spec.ingressClassName", NONE),
        TableColumn("Hosts", _hosts),
        TableColumn("Address", _ingress_addresses),
        TableColumn("Ports", lambda obj, now: "80, 443" if maps(obj, "spec", "tls") else "80"),
        AGE,
    ),
    "IngressClass": (
        text_column("Controller", "spec.controller"),
        TableColumn("Parameters", _parameters),
        AGE,
    ),
    "NetworkPolicy": (
        TableColumn(
            "Pod-Selector",
            lambda obj, now: cells.selector(value_at(obj, "spec", "podSelector")),
        ),
        AGE,
    ),
    "IPAddress": (TableColumn("ParentRef", _parent),),
    "ServiceCIDR": (
        TableColumn("CIDRs", lambda obj, now: ",".join(_texts(obj, "spec", "cidrs"))),
        AGE,
    ),
    "EndpointSlice": (
        text_column("AddressType", "addressType"),
        TableColumn("Ports", _slice_ports),
        TableColumn("Endpoints", _slice_addresses),
        AGE,
    ),
    "HorizontalPodAutoscaler": (
        TableColumn("Reference", _target),
        TableColumn("Targets", _metrics),
        text_column("MinPods", "spec.minReplicas", UNSET),
        declared_text(integer_column("MaxPods", "spec.maxReplicas")),
        declared_text(integer_column("Replicas", "status.currentReplicas")),
        AGE,
    ),
    "PodTemplate": (
        _containers("name"),
        _containers("image"),
        TableColumn("Pod Labels", _pod_labels),
    ),
    "RuntimeClass": (text_column("Handler", "handler"), AGE),
    "CertificateSigningRequest": (
        AGE,
        text_column("SignerName", "spec.signerName"),
        text_column("Requestor", "spec.username"),
        text_column("RequestedDuration", "spec.expirationSeconds", NONE),
        TableColumn("Condition", _request_state),
    ),
    "VolumeAttributesClass": (text_column("DriverName", "driverName"), AGE),
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "FlowSchema": (
        text_column("PriorityLevel", "spec.priorityLevelConfiguration.name"),
        integer_column("MatchingPrecedence", "spec.matchingPrecedence"),
        text_column("DistinguisherMethod", "spec.distinguisherMethod.type", NONE),
        AGE,
        TableColumn("MissingPL", _missing_level),
    ),
    "PriorityLevelConfiguration": (
        text_column("Type", "spec.type"),
        _value("NominalConcurrencyShares", "spec.limited.nominalConcurrencyShares"),
        _value("Queues", f"{_QUEUING}.queues"),
        _value("HandSize", f"{_QUEUING}.handSize"),
        _value("QueueLengthLimit", f"{_QUEUING}.queueLengthLimit"),
        AGE,
    ),
    "APIService": (TableColumn("Service", _service), TableColumn("Available", _available), AGE),
}
