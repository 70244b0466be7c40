"""Objects as plain dicts that nothing modifies in place: fields, conditions, selectors, hashes.

A kind is written with its group, `apps/ReplicaSet`, or without one for the core group.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.api import selectors
from moorage.api.meta import LabelSelector
from moorage.api.selectors import Selector

Object = dict[str, Any]
Condition = dict[str, Any]

# Metadata that only the server sets; it drops the values of requests.
SERVER_METADATA = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)

# The letters of Kubernetes' generated names: without vowels they spell no words.
SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
HASH_LETTERS = 10


def kind_of(obj: Object) -> str:
    """The kind with its group, whatever the version."""
    version: str = obj.get("apiVersion", "")
    kind: str = obj.get("kind", "")
    return f"{version.partition('/')[0]}/{kind}" if "/" in version else kind


def namespace(obj: Object) -> str:
    return str(obj["metadata"].get("namespace", ""))


def name(obj: Object) -> str:
    return str(obj["metadata"].get("name", ""))


def uid(obj: Object) -> str:
    return str(obj["metadata"].get("uid", ""))


def generation(obj: Object) -> int:
    return int(obj["metadata"].get("generation") or 0)


def labels(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def finalizers(obj: Object) -> list[str]:
    return obj["metadata"].get("finalizers") or []


def owners(obj: Object) -> list[Object]:
    """The owner references of an object."""
    return obj["metadata"].get("ownerReferences") or []


def controller(obj: Object) -> Object | None:
    """The reference to the object's controller, if it has one."""
    for owner in owners(obj):
        if owner.get("controller"):
            return owner
    return None


def controller_uid(obj: Object) -> str:
    found = controller(obj)
    return "" if found is None else str(found.get("uid", ""))


def reference(obj: Object) -> Object:
    """A reference to an object, as in `ownerReferences`."""
    kind = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return {**kind, "name": name(obj), "uid": uid(obj)}


def controller_reference(owner: Object) -> Object:
    """The reference to `owner` for the objects that it controls."""
    return {**reference(owner), "controller": True, "blockOwnerDeletion": True}


def is_terminating(obj: Object) -> bool:
    return obj["metadata"].get("deletionTimestamp") is not None


def spec(obj: Object) -> dict[str, Any]:
    return obj.get("spec") or {}


def spec_number(obj: Object, field: str, default: int = 0) -> int:
    """An integer of the spec; the default only if the field is absent or null."""
    value = spec(obj).get(field)
    return default if value is None else int(value)


def replicas(workload: Object) -> int:
    """The desired number of pods of a workload."""
    return spec_number(workload, "replicas", 1)


def template(workload: Object) -> Object:
    """The pod template of a workload."""
    return spec(workload).get("template") or {}


def status(obj: Object) -> dict[str, Any]:
    return obj.get("status") or {}


def status_number(obj: Object, field: str) -> int:
    """An integer of the status; 0 if the field is absent."""
    return int(status(obj).get(field) or 0)


def value_at(obj: Any, *path: str) -> Any:
    """The value at a path of fields, or None."""
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def plain(value: Any) -> Any:
    """A struct, or several, as the dicts and lists of the store."""
    return msgspec.json.decode(msgspec.json.encode(value))


# Changed copies --------------------------------------------------------------------------------


def with_spec(obj: Object, **fields: Any) -> Object:
    """The object with some fields of its spec set."""
    return {**obj, "spec": {**spec(obj), **fields}}


def without_spec(obj: Object, field: str) -> Object:
    """The object without a field of its spec."""
    return {**obj, "spec": {key: value for key, value in spec(obj).items() if key != field}}


def with_status(obj: Object, **fields: Any) -> Object:
    """The object with some fields of its status set; None removes a field."""
    merged = {**status(obj), **fields}
    return {**obj, "status": {key: value for key, value in merged.items() if value is not None}}


def with_metadata(obj: Object, **fields: Any) -> Object:
    """The object with some fields of its metadata set; None and empty values remove a field."""
    merged = {**obj["metadata"], **fields}
    kept = {key: value for key, value in merged.items() if value not in (None, [], {})}
    return {**obj, "metadata": kept}


def with_annotations(obj: Object, **texts: str) -> Object:
    """The object with annotations set."""
    return with_metadata(obj, annotations={**annotations(obj), **texts})


def patched(obj: Object, old: Object, new: Object) -> Object:
    """The object with the fields set that differ between two versions; other fields are kept."""
    result = {key: value for key, value in obj.items() if key not in old or key in new}
    for key, value in new.items():
        before, current = old.get(key), obj.get(key)
        if isinstance(before, dict) and isinstance(value, dict) and isinstance(current, dict):
            result[key] = patched(current, before, value)
        elif key not in old or before != value:
            result[key] = value
    return result


def without_finalizer(obj: Object, finalizer: str) -> Object:
    return with_metadata(obj, finalizers=[each for each in finalizers(obj) if each != finalizer])


# Conditions ------------------------------------------------------------------------------------


def condition(obj: Object, type_: str) -> Mapping[str, Any]:
    """A condition of the object's status; empty if it has none of that type."""
    for each in status(obj).get("conditions") or ():
        if each.get("type") == type_:
            found: Mapping[str, Any] = each
            return found
    return {}


def is_condition_true(obj: Object, type_: str) -> bool:
    return condition(obj, type_).get("status") == "True"


def with_condition(obj: Object, at: str, **fields: Any) -> Object:
    """The object with some fields of one condition set; the others keep their value."""
    new = {**condition(obj, fields["type"]), **fields}
    return with_status(obj, conditions=set_condition(status(obj).get("conditions") or [], new, at))


def transition_time(before: str | None, since: str | None, status: str, at: str) -> str:
    """When a condition changed: it keeps its time as long as it keeps its status."""
    return since or at if before == status else at


def set_condition(conditions: list[Condition], new: Condition, at: str) -> list[Condition]:
    """The conditions with one replaced; its transition time changes only when its status does."""
    for index, old in enumerate(conditions):
        if old.get("type") == new["type"]:
            since = old.get("lastTransitionTime")
            since = transition_time(old.get("status"), since, new["status"], at)
            changed = {**new, "lastTransitionTime": since}
            return [*conditions[:index], changed, *conditions[index + 1 :]]
    return [*conditions, {**new, "lastTransitionTime": at}]


# Selectors and templates -----------------------------------------------------------------------


def selector(obj: Object) -> Selector:
    """The selector of a workload; a ReplicationController has a plain map of labels."""
    selected = spec(obj).get("selector")
    if kind_of(obj) == "ReplicationController":
        plain = selected or template(obj).get("metadata", {}).get("labels")
        return selectors.selector_from_map(plain) if plain else selectors.NOTHING
    if selected is None:
        return selectors.NOTHING
    try:
        return selectors.compile_label_selector(msgspec.convert(selected, LabelSelector))
    except (selectors.SelectorError, msgspec.ValidationError):
        return selectors.NOTHING  # As if Kubernetes had rejected the object.


# Fields where an empty value has a meaning: an emptyDir volume, a selector of everything.
_MEANINGFUL_WHEN_EMPTY = ("emptyDir", "labelSelector", "namespaceSelector")

# Fields where false, 0 or "" equals an absent field. Protobuf always sends it, Go's JSON never.
# Other fields may mean something by it: `tolerationSeconds: 0`, `enableServiceLinks: false`.
# fmt: off
_ABSENT_WHEN_ZERO = frozenset({
    "effect", "fsType", "generation", "hostIP", "hostIPC", "hostNetwork", "hostPID", "hostPort",
    "hostname", "key", "medium", "name", "nodeName", "operator", "priorityClassName", "readOnly",
    "serviceAccount", "serviceAccountName", "stdin", "stdinOnce", "subPath", "subPathExpr",
    "subdomain", "tty", "value", "workingDir",
})
# fmt: on

# Fields whose keys are chosen by users.
_MAPS = ("annotations", "labels", "matchLabels", "nodeSelector")


def canonical(value: Any) -> Any:
    """A template without empty fields: clients add and drop those without a change in meaning."""
    if isinstance(value, list):
        return [canonical(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: each if key in _MAPS else canonical(each) for key, each in value.items()}
    return {key: each for key, each in found.items() if _is_meaningful(key, each)}


def _is_meaningful(key: str, value: Any) -> bool:
    if key in _ABSENT_WHEN_ZERO:
        return bool(value)
    return value not in (None, {}, []) or (value == {} and key in _MEANINGFUL_WHEN_EMPTY)


def template_hash(template: Any) -> str:
    """A short hash of a template; templates with the same meaning have the same hash."""
    encoded = msgspec.json.encode(canonical(template), order="deterministic")
    digest = hashlib.blake2b(encoded, digest_size=HASH_LETTERS)
    return "".join(SAFE_LETTERS[byte % len(SAFE_LETTERS)] for byte in digest.digest())


def int_or_percent(value: int | str | None, total: int, *, round_up: bool) -> int:
    """A count, or a share of the total written as "25%"."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    share = int(value.removesuffix("%") or 0) * total
    return -(-share // 100) if round_up else share // 100
