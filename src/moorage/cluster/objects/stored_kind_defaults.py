"""Defaults of kinds that are stored and shown, and that nothing here acts upon."""

import copy
from collections.abc import Callable
from typing import Any

from moorage.cluster.resources import RBAC
from moorage.controllers.objects import Object

_CPU_PERCENT = 80
_WEBHOOK: Object = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}
_DRIVER: Object = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "volumeLifecycleModes": ["Persistent"],
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}


def _set(holder: Any, defaults: Object) -> None:
    """Set fields that are absent."""
    if isinstance(holder, dict):
        for key, value in defaults.items():
            holder.setdefault(key, copy.deepcopy(value))


def _items(obj: Any, *path: str) -> list[Any]:
    """The objects of the list at a path."""
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return [each for each in obj if isinstance(each, dict)] if isinstance(obj, list) else []


def _network_policy(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    types = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    spec.setdefault("policyTypes", types)
    for rule in (*_items(spec, "ingress"), *_items(spec, "egress")):
        for port in _items(rule, "ports"):
            _set(port, {"protocol": "TCP"})


def _autoscaler(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": _CPU_PERCENT}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _role_binding(obj: Object) -> None:
    if isinstance(obj.get("roleRef"), dict):
        _set(obj["roleRef"], {"apiGroup": RBAC})
    for subject in _items(obj, "subjects"):
        if subject.get("kind") in ("User", "Group"):
            _set(subject, {"apiGroup": RBAC})


def _endpoints(obj: Object) -> None:
    for subset in _items(obj, "subsets"):
        for port in _items(subset, "ports"):
            _set(port, {"protocol": "TCP"})


def _event(obj: Object) -> None:
    times = dict.fromkeys(("firstTimestamp", "lastTimestamp", "eventTime"))
    _set(obj, {"source": {}, **times, "reportingComponent": "", "reportingInstance": ""})


def _endpoint_slice(obj: Object) -> None:
    for endpoint in _items(obj, "endpoints"):
        _set(endpoint, {"conditions": {}})
    for port in _items(obj, "ports"):
        _set(port, {"name": "", "protocol": "TCP"})


def _ingress_class(obj: Object) -> None:
    _set(obj.get("spec", {}).get("parameters"), {"scope": "Cluster"})


def _webhooks(obj: Object) -> None:
    mutating = obj.get("kind") == "MutatingWebhookConfiguration"
    for webhook in _items(obj, "webhooks"):
        _set(webhook, _WEBHOOK | ({"reinvocationPolicy": "Never"} if mutating else {}))
        _set((webhook.get("clientConfig") or {}).get("service"), {"port": 443})
        for rule in _items(webhook, "rules"):
            _set(rule, {"scope": "*"})


def _admission_policy(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    for key in ("matchConstraints", "matchResources"):
        matched = spec.get(key)
        _set(matched, {k: _WEBHOOK[k] for k in ("matchPolicy", "namespaceSelector")})
        _set(matched, {"objectSelector": {}})
        for rule in _items(matched, "resourceRules"):
            _set(rule, {"scope": "*"})


def _flow_schema(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000


def _priority_level(obj: Object) -> None:
    spec = obj.get("spec", {})
    _set(spec.get("exempt"), {"nominalConcurrencyShares": 0, "lendablePercent": 0})
    limited = spec.get("limited")
    _set(limited, {"nominalConcurrencyShares": 30, "lendablePercent": 0})
    queuing = (limited or {}).get("limitResponse", {}).get("queuing")
    _set(queuing, {"handSize": 8, "queues": 64, "queueLengthLimit": 50})


def _driver(obj: Object) -> None:
    _set(obj.setdefault("spec", {}), _DRIVER)


def _definition(obj: Object) -> None:
    spec = obj["spec"]
    names = spec["names"]
    _set(names, {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List"})
    _set(spec, {"conversion": {"strategy": "None"}})


STORED_KIND_DEFAULTS: dict[str, Callable[[Object], None]] = {
    "NetworkPolicy": _network_policy,
    "HorizontalPodAutoscaler": _autoscaler,
    "RoleBinding": _role_binding,
    "ClusterRoleBinding": _role_binding,
    "Endpoints": _endpoints,
    "EndpointSlice": _endpoint_slice,
    "Event": _event,
    "IngressClass": _ingress_class,
    "MutatingWebhookConfiguration": _webhooks,
    "ValidatingWebhookConfiguration": _webhooks,
    "MutatingAdmissionPolicy": _admission_policy,
    "ValidatingAdmissionPolicy": _admission_policy,
    "FlowSchema": _flow_schema,
    "PriorityLevelConfiguration": _priority_level,
    "CSIDriver": _driver,
    "CustomResourceDefinition": _definition,
}
