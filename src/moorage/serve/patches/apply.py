"""Server-side apply: each manager owns the fields that it applied.

An object gets `managedFields` with its first apply. From then on, other writes are recorded too,
so that a later apply detects conflicts. An object that was never applied has none, unlike in a
real API server, which records every write.

A set of fields has the form of `managedFields`:

    {"f:spec": {"f:containers": {"k:{\\"name\\":\\"app\\"}": {".": {}, "f:image": {}}}}}

`f:` is a field, `k:` an item of a list by its keys, `v:` an item of a set. A leaf is empty.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from moorage.serve.controllers.objects import Object
from moorage.serve.patches import list_rules
from moorage.serve.patches.list_rules import KEY_DEFAULTS, ListRule
from moorage.serve.status_errors import BadRequestError, ConflictError, StatusCause

Fields = dict[str, Any]
Path = tuple[str, ...]
"""Steps as they stand in a set: `f:spec`, `k:{"name":"app"}`."""

_HERE = "."
_UNMANAGED = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)


def object_fields(obj: dict[str, Any]) -> Fields:
    """The fields that an object states, but for those that only the server decides."""
    fields: Fields = {}
    for key, value in obj.items():
        if key in ("apiVersion", "kind"):
            continue
        if key == "metadata" and isinstance(value, dict):
            value = {name: each for name, each in value.items() if name not in _UNMANAGED}
            if not value:
                continue
        fields[f"f:{key}"] = _value_fields(value, (key,))
    return fields


def _value_fields(value: Any, path: tuple[str, ...]) -> Fields:
    if isinstance(value, dict) and path[-1] not in list_rules.WHOLE_MAPS:
        return {f"f:{key}": _value_fields(each, (*path, key)) for key, each in value.items()}
    if isinstance(value, list):
        rule = list_rules.rule(path)
        if rule.is_set:
            return {_item_step(each): {} for each in value}
        if rule.keys:
            fields = {}
            for each in value:
                step = key_step(each, rule)
                if step is None:
                    return {}
                fields[step] = {_HERE: {}, **_value_fields(each, path)}
            return fields
    return {}


def key_step(item: Any, rule: ListRule) -> str | None:
    """How an item of a list is named; None if it lacks a key."""
    if not isinstance(item, dict):
        return None
    keys = {}
    for key in rule.apply_keys or rule.keys:
        value = item.get(key, KEY_DEFAULTS.get(key))
        if value is None:
            return None
        keys[key] = value
    return "k:" + msgspec.json.encode(keys).decode()


def _item_step(value: Any) -> str:
    return "v:" + msgspec.json.encode(value).decode()


def leaves(fields: Fields, path: Path = ()) -> Iterator[Path]:
    """The paths of all leaves; an item of a list is one too, besides its fields."""
    for step, inner in fields.items():
        if step == _HERE:
            yield path
        elif inner:
            yield from leaves(inner, (*path, step))
        else:
            yield (*path, step)


def fields_from_leaves(paths: Iterator[Path] | set[Path]) -> Fields:
    """The set that has these leaves."""
    fields: Fields = {}
    for path in sorted(paths):
        inner = fields
        for step in path:
            inner = inner.setdefault(step, {})
        if path and path[-1].startswith("k:"):
            inner[_HERE] = {}
    return fields


ABSENT = object()


def find_value(obj: Any, path: Path, names: tuple[str, ...] = ()) -> Any:
    """The value at a path of an object, or ABSENT."""
    for at, step in enumerate(path):
        kind, text = step[:2], step[2:]
        if kind == "f:":
            if not isinstance(obj, dict) or text not in obj:
                return ABSENT
            obj, names = obj[text], (*names, text)
        elif kind == "k:":
            rule = list_rules.rule(names)
            items = obj if isinstance(obj, list) else ()
            obj = next((each for each in items if key_step(each, rule) == step), ABSENT)
            if obj is ABSENT:
                return ABSENT
        else:
            items = obj if isinstance(obj, list) else ()
            assert at == len(path) - 1
            return next((each for each in items if _item_step(each) == step), ABSENT)
    return obj


def remove_value(obj: Any, path: Path, names: tuple[str, ...] = ()) -> Any:
    """The object without what is at a path; parts that become empty go as well."""
    step, rest = path[0], path[1:]
    kind, text = step[:2], step[2:]
    if kind == "f:" and isinstance(obj, dict) and text in obj:
        inner = remove_value(obj[text], rest, (*names, text)) if rest else ABSENT
        others = {key: value for key, value in obj.items() if key != text}
        if inner is ABSENT or inner == {} or inner == []:
            return others
        return {key: inner if key == text else value for key, value in obj.items()}
    if kind in ("k:", "v:") and isinstance(obj, list):
        rule = list_rules.rule(names)
        kept = []
        for each in obj:
            same = (_item_step(each) if kind == "v:" else key_step(each, rule)) == step
            if not same:
                kept.append(each)
            elif rest:
                kept.append(remove_value(each, rest, names))
        return kept
    return obj


class FieldManager(NamedTuple):
    """Who writes, and how: `Apply` or `Update`, perhaps through a subresource."""

    name: str
    operation: str
    subresource: str = ""


def apply(
    live: Object | None, wanted: Any, manager: FieldManager, *, at: str, force: bool
) -> Object:
    """The object after an apply; raises ConflictError if a field is another manager's."""
    if not isinstance(wanted, dict) or not isinstance(wanted.get("metadata", {}), dict):
        raise BadRequestError("an applied configuration is an object with metadata")
    if wanted.get("metadata", {}).get("managedFields"):
        raise BadRequestError("metadata.managedFields must be nil")
    owned = _owned_fields(live)
    said = set(leaves(object_fields(wanted)))
    if live is None:
        return _with_managed_fields(wanted, {manager: said}, wanted, at)
    merged = _merge(live, wanted, ())
    conflicts: dict[FieldManager, list[Path]] = {}
    for other, paths in owned.items():
        if other == manager:
            continue
        for path in sorted(said & paths):
            if find_value(live, path) != find_value(merged, path):
                conflicts.setdefault(other, []).append(path)
    if conflicts and not force:
        raise _conflict(conflicts)
    for other, taken in conflicts.items():
        owned[other] = owned[other] - set(taken)
    before = owned.get(manager, set())
    others = set().union(*(paths for other, paths in owned.items() if other != manager))
    # The shortest first: an item that nobody else has a part in goes whole, its keys with it.
    for path in sorted(before - said - others, key=len):
        if find_value(merged, path) is not ABSENT:
            merged = remove_value(merged, path)
    owned[manager] = said
    return _with_managed_fields(merged, owned, wanted, at, live)


def record_update(before: Object, after: Object, manager: FieldManager, at: str) -> Object:
    """The object after any other write, its changed fields booked on whoever wrote them."""
    owned = _owned_fields(before)
    if not owned:
        return after
    old = set(leaves(object_fields(before)))
    new = set(leaves(object_fields(after)))
    changed = {path for path in new if find_value(before, path) != find_value(after, path)}
    if not changed and not old - new:
        return after
    owned = {who: (paths - changed) & new for who, paths in owned.items()}
    owned[manager] = owned.get(manager, set()) | changed
    return _with_managed_fields(after, owned, after, at, before)


def _merge(live: Any, wanted: Any, path: tuple[str, ...]) -> Any:
    if isinstance(live, dict) and isinstance(wanted, dict):
        if path and path[-1] in list_rules.WHOLE_MAPS:
            return wanted
        merged = dict(live)
        for key, value in wanted.items():
            merged[key] = _merge(live[key], value, (*path, key)) if key in live else value
        return merged
    if isinstance(live, list) and isinstance(wanted, list):
        return _merge_lists(live, wanted, path)
    return wanted


def _merge_lists(live: list[Any], wanted: list[Any], path: tuple[str, ...]) -> list[Any]:
    rule = list_rules.rule(path)
    if rule.is_set:
        return [*live, *(each for each in wanted if each not in live)]
    steps = [key_step(each, rule) for each in wanted] if rule.keys else [None]
    if None in steps:
        return wanted
    merged = {key_step(each, rule): each for each in live}
    if None in merged:
        return wanted
    for step, each in zip(steps, wanted, strict=True):
        merged[step] = _merge(merged[step], each, path) if step in merged else each
    return list(merged.values())


class ManagedFieldsEntry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One entry of `managedFields`."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: str = ""
    fields_type: str = ""
    fields_v1: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)
    subresource: str = ""


def _owned_fields(obj: Object | None) -> dict[FieldManager, set[Path]]:
    if obj is None:
        return {}
    owned = {}
    for each in obj["metadata"].get("managedFields", ()):
        entry = msgspec.convert(each, ManagedFieldsEntry)
        who = FieldManager(entry.manager, entry.operation, entry.subresource)
        owned[who] = set(leaves(entry.fields_v1))
    return owned


def _with_managed_fields(
    obj: Object,
    owned: dict[FieldManager, set[Path]],
    versioned: Object,
    at: str,
    before: Object | None = None,
) -> Object:
    old = {}
    for each in (before or {}).get("metadata", {}).get("managedFields", ()):
        who = FieldManager(each["manager"], each["operation"], each.get("subresource", ""))
        old[who] = each
    entries = []
    for who, paths in owned.items():
        if not paths:
            continue
        entry = ManagedFieldsEntry(
            manager=who.name,
            operation=who.operation,
            api_version=versioned.get("apiVersion", ""),
            time=at,
            fields_type="FieldsV1",
            fields_v1=fields_from_leaves(paths),
            subresource=who.subresource,
        )
        told = msgspec.to_builtins(entry)
        if who in old and old[who].get("fieldsV1") == told["fieldsV1"]:
            told = old[who]  # Nothing changed for this one: its time stays.
        entries.append(told)
    return {**obj, "metadata": {**obj.get("metadata", {}), "managedFields": entries}}


def _conflict(conflicts: dict[FieldManager, list[Path]]) -> ConflictError:
    causes = []
    for who, paths in conflicts.items():
        through = f' with subresource "{who.subresource}"' if who.subresource else ""
        text = f'conflict with "{who.name}"{through}'
        causes += [
            StatusCause("FieldManagerConflict", text, "".join(_step_text(step) for step in path))
            for path in paths
        ]
    count = len(causes)
    lines = "\n".join(f"- {cause.field}" for cause in causes)
    first = causes[0].message
    text = f"Apply failed with {count} conflict{'s' if count > 1 else ''}: "
    text += f"{first}: {causes[0].field}" if count == 1 else f"conflicts:\n{lines}"
    return ConflictError(text, causes=causes)


def _step_text(step: str) -> str:
    """A step as people read it: `.image`, `[name="app"]`."""
    if step.startswith("f:"):
        return f".{step[2:]}"
    if step.startswith("k:"):
        keys = msgspec.json.decode(step[2:])
        told = (f"{key}={msgspec.json.encode(value).decode()}" for key, value in keys.items())
        return f"[{','.join(told)}]"
    return f"[={step[2:]}]"
