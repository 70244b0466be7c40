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

# Letters that spell no words, as in Kubernetes' generated names.
SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
HASH_LETTERS = 10


def kind_of(obj: Object) -> str:
    """The kind with its group, whatever the version."""
    return full_kind(obj.get("apiVersion", ""), obj.get("kind", ""))


def full_kind(api_version: str, kind: str) -> str:
    """A kind with its group, from the two fields that name it."""
    group, slash, _ = api_version.partition("/")
    return f"{group}/{kind}" if slash else kind


def namespace(obj: Object) -> str:
    return str(obj["metadata"].get("namespace", ""))


def name(obj: Object) -> str:
    return str(obj["metadata"].get("name", ""))


def uid(obj: Object) -> str:
    return str(obj["metadata"].get("uid", ""))


def uid_number(uid: str) -> int:
    """A number that is always the same for the same UID."""
    return int.from_bytes(hashlib.blake2b(uid.encode(), digest_size=8).digest(), "big")


def labels(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def spec(obj: Object) -> dict[str, Any]:
    return obj.get("spec") or {}


def status(obj: Object) -> dict[str, Any]:
    return obj.get("status") or {}


def is_terminating(obj: Object) -> bool:
    return obj["metadata"].get("deletionTimestamp") is not None


def finalizers(obj: Object) -> list[str]:
    return obj["metadata"].get("finalizers") or []


def with_spec(obj: Object, **fields: Any) -> Object:
    """The object with some fields of its spec set."""
    return {**obj, "spec": {**spec(obj), **fields}}


def with_status(obj: Object, **fields: Any) -> Object:
    """The object with some fields of its status set; None takes one away."""
    merged = {**status(obj), **fields}
    return {**obj, "status": {key: value for key, value in merged.items() if value is not None}}


def with_metadata(obj: Object, **fields: Any) -> Object:
    """The object with some fields of its metadata set; None, or nothing in it, takes one away."""
    merged = {**obj["metadata"], **fields}
    kept = {key: value for key, value in merged.items() if value not in (None, [], {})}
    return {**obj, "metadata": kept}


def with_annotations(obj: Object, **texts: str) -> Object:
    """The object with annotations set."""
    return with_metadata(obj, annotations={**annotations(obj), **texts})


def without_finalizer(obj: Object, finalizer: str) -> Object:
    """The object once somebody has done what had to be done before its end."""
    return with_metadata(obj, finalizers=[each for each in finalizers(obj) if each != finalizer])


def condition(obj: Object, type_: str) -> Mapping[str, Any]:
    """A condition of the object's status; empty if it has none of that type."""
    for each in status(obj).get("conditions") or ():
        if each.get("type") == type_:
            found: Mapping[str, Any] = each
            return found
    return {}


def with_condition(obj: Object, at: str, **fields: Any) -> Object:
    """The object with one condition set; its transition time moves only when its status does."""
    old = condition(obj, fields["type"])
    same = old.get("status") == fields["status"]
    new = {**old, **fields}
    new["lastTransitionTime"] = old.get("lastTransitionTime", at) if same else at
    conditions = list(status(obj).get("conditions") or ())
    places = [place for place, each in enumerate(conditions) if each.get("type") == new["type"]]
    if places:
        conditions[places[0]] = new
    else:
        conditions.append(new)
    return with_status(obj, conditions=conditions)


def selector(obj: Object) -> Selector:
    """What a workload selects; a replication controller writes a plain map of labels."""
    wanted = spec(obj).get("selector")
    if kind_of(obj) == "ReplicationController":
        plain = wanted or (spec(obj).get("template") or {}).get("metadata", {}).get("labels")
        return selectors.selector_from_map(plain) if plain else selectors.NOTHING
    return compiled(wanted)


def compiled(wanted: Mapping[str, Any] | None) -> Selector:
    """A label selector; one that Kubernetes would refuse selects nothing."""
    if wanted is None:
        return selectors.NOTHING
    try:
        return selectors.compile_label_selector(msgspec.convert(wanted, LabelSelector))
    except (selectors.SelectorError, msgspec.ValidationError):
        return selectors.NOTHING


# Where something empty says something: a volume that is just there, a selector of everything.
_TELLING_WHEN_EMPTY = ("emptyDir", "labelSelector", "namespaceSelector")

# Where false, 0 or "" is the same as nothing at all. Protobuf always says it, Go's JSON never.
# Other fields may mean something by it: `tolerationSeconds: 0`, `enableServiceLinks: false`.
# fmt: off
_NOTHING_WHEN_ZERO = frozenset({
    "effect", "fsType", "generation", "hostIP", "hostIPC", "hostNetwork", "hostPID", "hostPort",
    "hostname", "key", "medium", "name", "nodeName", "operator", "priorityClassName", "readOnly",
    "serviceAccount", "serviceAccountName", "stdin", "stdinOnce", "subPath", "subPathExpr",
    "subdomain", "tty", "value", "workingDir",
})
# fmt: on

# Where keys are anybody's words, and no fields.
_MAPS = ("annotations", "labels", "matchLabels", "nodeSelector")


def essence(value: Any) -> Any:
    """What a template says, without empty fields: clients add and drop those as they please."""
    if isinstance(value, list):
        return [essence(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: each if key in _MAPS else essence(each) for key, each in value.items()}
    return {key: each for key, each in found.items() if _tells(key, each)}


def _tells(key: str, value: Any) -> bool:
    if key in _NOTHING_WHEN_ZERO:
        return bool(value)
    return value not in (None, {}, []) or (value == {} and key in _TELLING_WHEN_EMPTY)


def fingerprint(template: Any) -> str:
    """A short name for a template: the same for those that say the same."""
    told = msgspec.json.encode(essence(template), order="deterministic")
    digest = hashlib.blake2b(told, digest_size=HASH_LETTERS)
    return "".join(SAFE_LETTERS[byte % len(SAFE_LETTERS)] for byte in digest.digest())


def scaled(value: int | str | None, total: int, *, round_up: bool) -> int:
    """A count, or a share of the total written as "25%"."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    share = int(value.removesuffix("%") or 0) * total
    return -(-share // 100) if round_up else share // 100


Condition = dict[str, Any]


def set_condition(conditions: list[Condition], new: Condition, at: str) -> list[Condition]:
    """The conditions with one set; its transition time moves only when its status does."""
    for index, old in enumerate(conditions):
        if old.get("type") == new["type"]:
            same = old.get("status") == new["status"]
            since = old.get("lastTransitionTime", at) if same else at
            changed = {**new, "lastTransitionTime": since}
            return [*conditions[:index], changed, *conditions[index + 1 :]]
    return [*conditions, {**new, "lastTransitionTime": at}]


def is_condition_true(status: dict[str, Any], type_: str) -> bool:
    """Whether a condition holds."""
    return any(
        each.get("type") == type_ and each.get("status") == "True"
        for each in status.get("conditions", ())
    )
