"""ResourceQuota: what the objects of a namespace use, and what a new or larger one would add.

    pods, services, configmaps, ...         numbers of objects; pods that ended do not count
    count/NAME.GROUP                        objects of any kind
    cpu, requests.memory, limits.cpu, ...   sums over pods
    requests.storage, CLASS.storageclass... sums and numbers of claims, of a class if one is named

Amounts are nano-units, as `quantity.nano` returns them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moorage.api import quantity
from moorage.controllers import objects, pods, writes
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.writes import Write

KIND = "ResourceQuota"
DEFINITION = "apiextensions.k8s.io/CustomResourceDefinition"
Usage = dict[str, int]

_ONE = quantity.NANO
_NATIVE = ("cpu", "memory", "ephemeral-storage")
_COUNTED = {
    "Service": "services",
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "ReplicationController": "replicationcontrollers",
    "ResourceQuota": "resourcequotas",
    "PersistentVolumeClaim": "persistentvolumeclaims",
}
_MAX_DEVICES = 32  # of one claim
_CLASS = ".storageclass.storage.k8s.io/"
# Resources of which every container has to state its amount, if a quota limits them.
_STATED = (
    "cpu",
    "memory",
    *(f"{a}.{b}" for a in ("requests", "limits") for b in ("cpu", "memory")),
)


def reconcile(quota: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Set the status: the limits, and what is used of them."""
    found = index.in_namespace(objects.namespace(quota))
    yield from writes.update_if_changed(quota, counted(quota, found, index.all(DEFINITION)))


def counted(quota: Object, found: Iterable[Object], definitions: Iterable[Object]) -> Object:
    """The quota with the usage of all objects of its namespace."""
    total: Usage = dict.fromkeys(objects.spec(quota).get("hard") or {}, 0)
    definitions = list(definitions)
    for obj in found:
        if matches_scopes(quota, obj):
            for name, amount in usage(obj, definitions).items():
                if name in total:
                    total[name] += amount
    return with_usage(quota, total)


def with_usage(quota: Object, used: Mapping[str, int]) -> Object:
    """The quota with a status that shows this usage."""
    texts = {name: formatted(name, amount) for name, amount in used.items()}
    return objects.with_status(quota, hard=objects.spec(quota).get("hard") or {}, used=texts)


def formatted(name: str, amount: int) -> str:
    """An amount as a quantity; bytes have binary suffixes."""
    is_size = any(unit in name for unit in ("memory", "storage", "hugepages-"))
    if is_size and "persistentvolumeclaims" not in name and amount % _ONE == 0:
        return quantity.binary_form(amount // _ONE)
    return quantity.canonical(quantity.from_nano(amount))


# What an object uses ---------------------------------------------------------------------------


def usage(obj: Object, definitions: Iterable[Object] = ()) -> Usage:
    """What an object counts for, by the names that quotas use."""
    kind = objects.kind_of(obj)
    used: Usage = {f"count/{resource_name(kind, definitions)}": _ONE}
    if kind in _COUNTED:
        used[_COUNTED[kind]] = _ONE
    match kind:
        case "Pod" if not pods.is_ended(obj):
            used |= _pod_usage(obj)
        case "Service":
            used |= _service_usage(obj)
        case "PersistentVolumeClaim":
            used |= _claim_usage(obj)
        case "resource.k8s.io/ResourceClaim":
            used |= _device_usage(obj)
    return used


def growth(obj: Object, before: Object, definitions: Iterable[Object] = ()) -> Usage:
    """What an update adds to the usage; less of one thing makes no room for another."""
    old = usage(before, definitions)
    return {
        name: more
        for name, amount in usage(obj, definitions).items()
        if (more := amount - old.get(name, 0)) > 0
    }


def resource_name(kind: str, definitions: Iterable[Object]) -> str:
    """The name of a kind in a quota: `pods`, `replicasets.apps`."""
    group, _, name = kind.rpartition("/")
    for each in definitions:
        names = objects.spec(each).get("names") or {}
        if names.get("kind") == name and objects.spec(each).get("group") == group:
            return f"{names.get('plural')}.{group}"
    lower = name.lower()
    if lower.endswith("y"):
        plural = f"{lower[:-1]}ies"
    elif lower.endswith("s"):
        plural = lower if lower == "endpoints" else f"{lower}es"
    else:
        plural = f"{lower}s"
    return f"{plural}.{group}" if group else plural


def _pod_usage(pod: Object) -> Usage:
    used: Usage = {"pods": _ONE}
    for name, amount in pod_total(pod, "requests").items():
        used[f"requests.{name}"] = amount
        if name in _NATIVE or name.startswith("hugepages-"):
            used[name] = amount
    limits = pod_total(pod, "limits")
    return used | {f"limits.{name}": limits[name] for name in _NATIVE if name in limits}


def pod_total(pod: Object, field: str) -> Usage:
    """The requests or limits of a pod: of its containers, or its init containers if larger."""
    spec = objects.spec(pod)
    total: Usage = {}
    for container in spec.get("containers") or ():
        _add(total, _amounts(container, field))
    sidecars: Usage = {}
    largest: Usage = {}
    for container in spec.get("initContainers") or ():
        own = _amounts(container, field)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, own)
            own = dict(sidecars)
        else:
            _add(own, sidecars)
        for name, amount in own.items():
            largest[name] = max(largest.get(name, 0), amount)
    _add(total, sidecars)
    for name, amount in largest.items():
        total[name] = max(total.get(name, 0), amount)
    total |= _amounts(spec, field)
    if field == "requests" or total:
        for name, each in (spec.get("overhead") or {}).items():
            if field == "requests" or name in total:
                total[name] = total.get(name, 0) + quantity.nano(each)
    return total


def _amounts(container: Mapping[str, Any], field: str) -> Usage:
    stated = (container.get("resources") or {}).get(field) or {}
    return {name: quantity.nano(each) for name, each in stated.items()}


def _add(total: Usage, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _service_usage(service: Object) -> Usage:
    spec, ports = objects.spec(service), objects.spec(service).get("ports") or ()
    match spec.get("type"):
        case "NodePort":
            return {"services.nodeports": len(ports) * _ONE}
        case "LoadBalancer":
            allocated = spec.get("allocateLoadBalancerNodePorts") is not False
            count = len(ports) if allocated else sum(bool(each.get("nodePort")) for each in ports)
            return {"services.loadbalancers": _ONE, "services.nodeports": count * _ONE}
    return {}


def _claim_usage(claim: Object) -> Usage:
    stated = objects.value_at(claim, "spec", "resources", "requests", "storage")
    amount = 0 if stated is None else quantity.nano(stated)
    used = {"requests.storage": amount}
    if name := objects.spec(claim).get("storageClassName"):
        used[f"{name}{_CLASS}requests.storage"] = amount
        used[f"{name}{_CLASS}persistentvolumeclaims"] = _ONE
    return used


def _device_usage(claim: Object) -> Usage:
    """Devices by their class; of alternatives, the largest number of each class."""
    used: Usage = {}
    for request in objects.value_at(claim, "spec", "devices", "requests") or ():
        exactly = request.get("exactly")
        options = [exactly] if exactly else request.get("firstAvailable") or []
        largest: Usage = {}
        for each in options:
            takes_all = each.get("allocationMode") == "All"
            count = _MAX_DEVICES if takes_all else int(each.get("count") or 1)
            name = f"{each.get('deviceClassName')}.deviceclass.resource.k8s.io/devices"
            largest[name] = max(largest.get(name, 0), count * _ONE)
        _add(used, largest)
    return used


# Which objects a quota covers ------------------------------------------------------------------


def matches_scopes(quota: Object, obj: Object) -> bool:
    """Whether a quota covers an object: scopes restrict it to some pods."""
    spec = objects.spec(quota)
    scopes = [{"scopeName": each, "operator": "Exists"} for each in spec.get("scopes") or ()]
    scopes += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    if not scopes:
        return True
    match objects.kind_of(obj):
        case "Pod":
            return all(_in_scope(each, obj) for each in scopes)
        case "PersistentVolumeClaim":
            return all(_in_class_scope(each, obj) for each in scopes)
    return False


def _in_class_scope(scope: Mapping[str, Any], claim: Object) -> bool:
    """Whether a claim has, or gets, a volume attributes class of the scope."""
    if scope.get("scopeName") != "VolumeAttributesClass":
        return False
    names = {
        objects.value_at(claim, "spec", "volumeAttributesClassName"),
        objects.value_at(claim, "status", "currentVolumeAttributesClassName"),
        objects.value_at(claim, "status", "modifyVolumeStatus", "targetVolumeAttributesClassName"),
    } - {None, ""}
    return (
        any(_matches_name(scope, str(name)) for name in sorted(names))
        if names
        else (_matches_name(scope, ""))
    )


def _matches_name(scope: Mapping[str, Any], name: str) -> bool:
    """Whether the name of a class, or an empty one, meets the operator of a scope."""
    values = scope.get("values") or ()
    operators = {
        "Exists": bool(name),
        "DoesNotExist": not name,
        "In": name in values,
        "NotIn": name not in values,
    }
    return operators.get(str(scope.get("operator")), False)


def _in_scope(scope: Mapping[str, Any], pod: Object) -> bool:
    spec = objects.spec(pod)
    match scope.get("scopeName"):
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "CrossNamespacePodAffinity":
            return _has_cross_namespace_affinity(spec)
        case "PriorityClass":
            return _matches_name(scope, spec.get("priorityClassName") or "")
    return False


def _is_best_effort(pod: Object) -> bool:
    stated = [*pod_total(pod, "requests"), *pod_total(pod, "limits")]
    return not any(name in ("cpu", "memory") for name in stated)


def _has_cross_namespace_affinity(spec: Mapping[str, Any]) -> bool:
    affinity = spec.get("affinity") or {}
    for field in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(field) or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [each.get("podAffinityTerm") or {} for each in preferred]
        if any(each.get("namespaces") or "namespaceSelector" in each for each in terms):
            return True
    return False


def has_fallen(old: Object, new: Object) -> bool:
    """Whether less is used of something, so that a refused object may be created now."""
    before, after = (objects.status(each).get("used") or {} for each in (old, new))
    return any(
        quantity.nano(after.get(name, 0)) < quantity.nano(amount) for name, amount in before.items()
    )


# New and updated objects -------------------------------------------------------------------------


def charged(
    quota: Object, obj: Object, definitions: Iterable[Object], before: Object | None = None
) -> tuple[Object, str]:
    """The quota with an object counted, and why the object is refused, if it is.

    Of an update of `before`, what it adds is counted.
    """
    hard = amounts(objects.status(quota).get("hard"))
    if not matches_scopes(quota, obj):
        return quota, ""
    if why := unstated(quota, obj, hard):
        return quota, why
    definitions = list(definitions)
    every = usage(obj, definitions) if before is None else growth(obj, before, definitions)
    added = limited(every, hard)
    if not added:
        return quota, ""
    used = {**dict.fromkeys(hard, 0), **amounts(objects.status(quota).get("used"))}
    if why := exceeded(quota, added, used, hard):
        return quota, why
    texts = {name: formatted(name, used[name] + added.get(name, 0)) for name in hard}
    known = objects.status(quota).get("used") or {}
    return objects.with_status(quota, used={**known, **texts}), ""


def amounts(stated: Mapping[str, Any] | None) -> Usage:
    """The quantities of a quota's spec or status as numbers."""
    return {name: quantity.nano(amount) for name, amount in (stated or {}).items()}


def limited(used: Usage, hard: Usage) -> Usage:
    """The part of a usage that a quota limits."""
    return {name: amount for name, amount in used.items() if name in hard}


def exceeded(quota: Object, added: Usage, used: Usage, hard: Usage) -> str:
    """Why an object that adds so much is refused; empty if it is not."""
    over = sorted(name for name in added if added[name] and used[name] + added[name] > hard[name])
    if not over:
        return ""
    asked, known, limit = (
        ",".join(f"{name}={formatted(name, each[name])}" for name in over)
        for each in (added, used, hard)
    )
    text = f"requested: {asked}, used: {known}, limited: {limit}"
    return f"exceeded quota: {objects.name(quota)}, {text}"


def unstated(quota: Object, obj: Object, hard: Iterable[str]) -> str:
    """Why a pod is refused that does not state its amount of a limited resource."""
    if objects.kind_of(obj) != "Pod" or objects.spec(obj).get("resources"):
        return ""
    found = []
    for name in sorted(name for name in hard if name in _STATED):
        field, _, resource = name.rpartition(".")
        containers = [
            str(each.get("name"))
            for key in ("containers", "initContainers")
            for each in objects.spec(obj).get(key) or ()
            if resource not in _amounts(each, field or "requests")
        ]
        if containers:
            found.append(f"{name} for: {','.join(sorted(containers))}")
    missing = "; ".join(found)
    return f"failed quota: {objects.name(quota)}: must specify {missing}" if missing else ""
