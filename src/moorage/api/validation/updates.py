"""Updates: which fields of an object may change."""

from collections.abc import Callable
from typing import Any

import msgspec

from moorage.api.validation import amounts
from moorage.api.validation import field_errors as fe
from moorage.api.validation.field_errors import FieldErrors, Fields

IMMUTABLE = "field is immutable"
_IMMUTABLE_DATA = "field is immutable when `immutable` is set"
# Fields that may not change, by kind.
_FIELDS: dict[str, tuple[str, ...]] = {
    "Deployment": ("spec.selector",),
    "ReplicaSet": ("spec.selector",),
    "DaemonSet": ("spec.selector",),
    "StorageClass": ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
    "ResourceQuota": ("spec.scopes", "spec.scopeSelector"),
    "Secret": ("type",),
    "RuntimeClass": ("handler",),
    "CSIStorageCapacity": ("nodeTopology", "storageClassName"),
    "VolumeAttachment": ("spec",),
    "PodGroup": ("spec",),
    "Workload": ("spec",),
    "ResourceClaim": ("spec",),
    "ResourceClaimTemplate": ("spec",),
    "ResourceSlice": ("spec.driver", "spec.nodeName", "spec.pool.name"),
}
_QUANTITIES = ("requests", "limits", "overhead", "capacity")


def validate_update(kind: str, old: Fields, new: Fields) -> FieldErrors:
    """The errors of changes; both objects have their defaults."""
    for path in _FIELDS.get(kind, ()):
        yield from _immutable(_at(old, path), _at(new, path), path)
    if (rules := _RULES.get(kind)) is not None:
        yield from rules(old, new)


def _at(obj: Fields, path: str) -> Any:
    value: Any = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _immutable(old: Any, new: Any, path: str) -> FieldErrors:
    if not same(old, new):
        yield fe.invalid(path, new, IMMUTABLE)


def same(old: Any, new: Any) -> bool:
    """Whether two values are equal; empty values are absent, and quantities are numbers."""
    return bool(old == new or _normal(old) == _normal(new))


def _normal(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        if name in _QUANTITIES:
            return {key: amounts.nano(each) for key, each in value.items()} or None
        found = {key: _normal(each, key) for key, each in value.items()}
        return {key: each for key, each in found.items() if each is not None} or None
    if isinstance(value, list):
        return [_normal(each) for each in value] or None
    return value if value not in ("", False) else None


# Pods

_POD_MAY_CHANGE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _pod(old: Fields, new: Fields) -> FieldErrors:
    before, after = fe.mapping(old, "spec"), fe.mapping(new, "spec")
    for field in ("containers", "initContainers"):
        if len(fe.items(before, field)) != len(fe.items(after, field)):
            rule = "pod updates may not add or remove containers"
            yield fe.forbidden(f"spec.{field}", rule)
            return
    yield from _deadline(before, after)
    was, now = ({_toleration(each) for each in fe.items(s, "tolerations")} for s in (before, after))
    if was - now:
        rule = "existing toleration can not be modified except its tolerationSeconds"
        yield fe.forbidden("spec.tolerations", rule)
    gates = {fe.text(each, "name") for each in fe.items(before, "schedulingGates")}
    for i, gate in enumerate(fe.items(after, "schedulingGates")):
        if (name := fe.text(gate, "name")) not in gates:
            rule = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield fe.forbidden(f"spec.schedulingGates[{i}].name", rule)
    mutable = {"activeDeadlineSeconds", "schedulingGates", "tolerations"}
    if gates:
        yield from _gated_placement(before, after)
        mutable.add("nodeSelector")
    if not same(_fixed(before, mutable, gates), _fixed(after, mutable, gates)):
        rule = f"pod updates may not change fields other than {_POD_MAY_CHANGE}"
        yield fe.forbidden("spec", f"{rule}\n{_changes(before, after, mutable)}")


def _toleration(toleration: Fields) -> bytes:
    """The text of a toleration without its seconds, to compare."""
    return _text({k: each for k, each in toleration.items() if k != "tolerationSeconds"})


def _text(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _deadline(before: Fields, after: Fields) -> FieldErrors:
    old, new = fe.number(before, "activeDeadlineSeconds"), fe.number(after, "activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if old is not None and new is None:
        yield fe.invalid(path, None, "must not update from a positive integer to nil value")
    elif old is not None and new is not None and new > old:
        yield fe.invalid(path, new, "must be less than or equal to previous value")


def _gated_placement(before: Fields, after: Fields) -> FieldErrors:
    """While a pod is gated, its node selector and node affinity may become narrower."""
    old, new = fe.mapping(before, "nodeSelector"), fe.mapping(after, "nodeSelector")
    if any(new.get(key) != value for key, value in old.items()):
        rule = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield fe.invalid("spec.nodeSelector", new, rule)
    old_terms, new_terms = (
        fe.items(fe.mapping(_node_affinity(spec), _REQUIRED), "nodeSelectorTerms")
        for spec in (before, after)
    )
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if old_terms and len(old_terms) != len(new_terms):
        rule = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield fe.invalid(path, new_terms, rule)
        return
    for i, term in enumerate(old_terms):
        for field in ("matchExpressions", "matchFields"):
            kept = set(map(_text, fe.items(new_terms[i], field)))
            if any(_text(each) not in kept for each in fe.items(term, field)):
                rule = "only additions are allowed (no mutations or deletions)"
                yield fe.invalid(f"{path}[{i}]", new_terms[i], rule)
                break


def _node_affinity(spec: Fields) -> Fields:
    return fe.mapping(fe.mapping(spec, "affinity"), "nodeAffinity")


def _fixed(spec: Fields, mutable: set[str], gates: set[str]) -> Fields:
    fixed = {key: value for key, value in spec.items() if key not in mutable}
    for field in ("containers", "initContainers"):
        fixed[field] = [{**each, "image": ""} for each in fe.items(fixed, field)]
    if gates and fe.mapping(fixed, "affinity"):
        affinity = fe.mapping(fixed, "affinity").items()
        fixed["affinity"] = {key: value for key, value in affinity if key != "nodeAffinity"}
    if (fe.number(fixed, "terminationGracePeriodSeconds") or 0) < 0:
        fixed["terminationGracePeriodSeconds"] = 1
    return fixed


def _changes(before: Fields, after: Fields, mutable: set[str]) -> str:
    """The fields that changed; an API server shows a difference of its internal types."""
    names = sorted((before.keys() | after.keys()) - mutable)
    changed = [name for name in names if not same(before.get(name), after.get(name))]
    lines = (
        f"- {name}: {fe.shown(before.get(name))}\n+ {name}: {fe.shown(after.get(name))}"
        for name in changed
    )
    return "\n".join(lines)


# Workloads

_STATEFUL_MUTABLE = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)
_STATEFUL_RULE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)
_JOB_IMMUTABLE = (
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)
_SUSPENDED_MUTABLE = ("nodeSelector", "tolerations", "schedulingGates")


def _stateful_set(old: Fields, new: Fields) -> FieldErrors:
    before, after = (
        {k: v for k, v in fe.mapping(each, "spec").items() if k not in _STATEFUL_MUTABLE}
        for each in (old, new)
    )
    if not same(before, after):
        yield fe.forbidden("spec", _STATEFUL_RULE)


def _job(old: Fields, new: Fields) -> FieldErrors:
    before, after = fe.mapping(old, "spec"), fe.mapping(new, "spec")
    completions = fe.number(after, "completions")
    if fe.text(after, "completionMode") != "Indexed":
        yield from _immutable(before.get("completions"), completions, "spec.completions")
    elif completions not in (
        None,
        fe.number(before, "completions"),
        fe.number(after, "parallelism"),
    ):
        rule = "can only be modified in tandem with spec.parallelism"
        yield fe.invalid("spec.completions", completions, rule)
    yield from _immutable(before.get("selector"), after.get("selector"), "spec.selector")
    yield from _job_template(before, after)
    for field in _JOB_IMMUTABLE:
        yield from _immutable(before.get(field), after.get(field), f"spec.{field}")


def _job_template(before: Fields, after: Fields) -> FieldErrors:
    """The template of a suspended job that has not started may change in few fields."""
    old, new = fe.mapping(before, "template"), fe.mapping(after, "template")
    if not fe.flag(before, "suspend"):
        yield from _immutable(old, new, "spec.template")
    elif not same(*(_suspended(fe.mapping(each, "spec")) for each in (old, new))):
        yield fe.invalid("spec.template.spec", fe.mapping(new, "spec"), IMMUTABLE)


def _suspended(spec: Fields) -> Fields:
    fixed = {key: value for key, value in spec.items() if key not in _SUSPENDED_MUTABLE}
    for field in ("containers", "initContainers"):
        fixed[field] = [{**each, "resources": {}} for each in fe.items(fixed, field)]
    affinity = fe.mapping(fixed, "affinity").items()
    fixed["affinity"] = {key: value for key, value in affinity if key != "nodeAffinity"}
    return fixed


# Services and storage


def _service(old: Fields, new: Fields) -> FieldErrors:
    before, after = fe.mapping(old, "spec"), fe.mapping(new, "spec")
    if "ExternalName" in (fe.text(before, "type"), fe.text(after, "type")):
        return
    address = fe.text(after, "clusterIP")
    if fe.text(before, "clusterIP") and fe.text(before, "clusterIP") != address:
        yield fe.invalid("spec.clusterIPs[0]", [address], "may not change once set")


_CLAIM_RULE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)


def _claim(old: Fields, new: Fields) -> FieldErrors:
    before, after = dict(fe.mapping(old, "spec")), dict(fe.mapping(new, "spec"))
    sizes = [_at({"spec": each}, "spec.resources.requests.storage") for each in (before, after)]
    if not fe.text(before, "volumeName"):
        before["volumeName"] = after.get("volumeName")
    if "storageClassName" not in before:
        before["storageClassName"] = after.get("storageClassName")
    if fe.text(fe.mapping(new, "status"), "phase") == "Bound":
        after["resources"] = before.get("resources")
        after["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
    if not same(before, after):
        yield fe.forbidden("spec", f"{_CLAIM_RULE}\n{_changes(before, after, set())}")
    capacity = amounts.nano(_at(dict(old), "status.capacity.storage")) or 0
    small, large = (amounts.nano(size) or 0 for size in reversed(sizes))
    if small < large and small <= capacity:
        rule = "field can not be less than status.capacity"
        yield fe.forbidden("spec.resources.requests.storage", rule)
    yield from _immutable(before.get("volumeMode"), after.get("volumeMode"), "volumeMode")


_NOT_THE_SOURCE = frozenset(
    {
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    }
)


def _volume(old: Fields, new: Fields) -> FieldErrors:
    before, after = fe.mapping(old, "spec"), fe.mapping(new, "spec")
    sources = [
        {key: value for key, value in each.items() if key not in _NOT_THE_SOURCE}
        for each in (before, after)
    ]
    if not same(*sources):
        rule = "spec.persistentvolumesource is immutable after creation"
        changes = _changes(sources[0], sources[1], set())
        yield fe.forbidden("spec.persistentvolumesource", f"{rule}\n{changes}")
    yield from _immutable(before.get("volumeMode"), after.get("volumeMode"), "volumeMode")
    affinity = before.get("nodeAffinity")
    if affinity and not same(affinity, after.get("nodeAffinity")):
        rule = "field is immutable, except for updating from beta label to GA"
        yield fe.invalid("nodeAffinity", after.get("nodeAffinity"), rule)


def _csi_driver(old: Fields, new: Fields) -> FieldErrors:
    before, after = fe.mapping(old, "spec"), fe.mapping(new, "spec")
    # An API server names the field in this way.
    value = after.get("attachRequired")
    yield from _immutable(before.get("attachRequired"), value, "spec.attachedRequired")
    modes = "volumeLifecycleModes"
    yield from _immutable(before.get(modes), after.get(modes), f"spec.{modes}")


def _csi_node(old: Fields, new: Fields) -> FieldErrors:
    before = {fe.text(each, "name"): each for each in fe.items(fe.mapping(old, "spec"), "drivers")}
    for driver in fe.items(fe.mapping(new, "spec"), "drivers"):
        earlier = before.get(fe.text(driver, "name"))
        if earlier is not None and any(
            not same(earlier.get(field), driver.get(field)) for field in ("nodeID", "topologyKeys")
        ):
            yield fe.invalid("spec.drivers", driver, IMMUTABLE)


# Others


def _priority_class(old: Fields, new: Fields) -> FieldErrors:
    if (fe.number(old, "value") or 0) != (fe.number(new, "value") or 0):
        yield fe.forbidden("value", "may not be changed in an update.")
    field = "preemptionPolicy"
    yield from _immutable(old.get(field), new.get(field), field)


def _data(old: Fields, new: Fields) -> FieldErrors:
    if not fe.flag(old, "immutable"):
        return
    if not fe.flag(new, "immutable"):
        yield fe.forbidden("immutable", _IMMUTABLE_DATA)
    for field in ("data", "binaryData"):
        if not same(old.get(field), new.get(field)):
            yield fe.forbidden(field, _IMMUTABLE_DATA)


def _node(old: Fields, new: Fields) -> FieldErrors:
    before, after = fe.mapping(old, "spec"), fe.mapping(new, "spec")
    for field, stated in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        if before.get(field) and not same(before[field], after.get(field)):
            rule = f'node updates may not change {stated} except from "" to valid'
            yield fe.forbidden(f"spec.{field}", rule)


_RULES: dict[str, Callable[[Fields, Fields], FieldErrors]] = {
    "Pod": _pod,
    "StatefulSet": _stateful_set,
    "Job": _job,
    "Service": _service,
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": _volume,
    "CSIDriver": _csi_driver,
    "CSINode": _csi_node,
    "PriorityClass": _priority_class,
    "ConfigMap": _data,
    "Secret": _data,
    "Node": _node,
}
