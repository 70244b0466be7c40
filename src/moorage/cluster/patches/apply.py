"""Server-side apply: each manager owns the fields that it applied.

Creations and updates by clients are recorded too, so that an apply detects conflicts with them.
Writes of the built-in controllers and the scheduler are not: they leave `managedFields` as it is.

A set of fields has the form of `managedFields`:

    {"f:spec": {"f:containers": {"k:{\\"name\\":\\"app\\"}": {".": {}, "f:image": {}}}}}

`f:` is a field, `k:` an item of a list by its keys, `v:` an item of a set. A leaf is empty.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from moorage.cluster.patches import last_applied, list_rules
from moorage.cluster.patches.list_rules import BUILT_IN_KINDS, ListRule, MergeRules
from moorage.cluster.status_errors import (
    BadRequestError,
    ConflictError,
    StatusCause,
    UnclassifiedError,
)
from moorage.cluster.store import CACHED_BYTES
from moorage.controllers.objects import SERVER_METADATA, Object

Fields = dict[str, Any]
Path = tuple[str, ...]
"""Steps of a set of fields: `f:spec`, `k:{"name":"app"}`."""


class FieldManager(NamedTuple):
    """An owner of fields: a client, its operation (`Apply` or `Update`), and a subresource."""

    name: str
    operation: str
    subresource: str = ""


OwnedFields = dict[FieldManager, set[Path]]
# The owner of all fields of an object without `managedFields`, in Kubernetes' words.
BEFORE_FIRST_APPLY = FieldManager("before-first-apply", "Update")


def apply(
    live: Object | None,
    applied: Any,
    manager: FieldManager,
    *,
    at: str,
    force: bool,
    rules: MergeRules = BUILT_IN_KINDS,
    shown_version: str = "",
) -> Object:
    """The object after an apply; raises ConflictError if another manager owns a changed field.

    `shown_version` is the API version that a conflict names, if it is not the object's.
    """
    if not isinstance(applied, dict) or not isinstance(applied.get("metadata", {}), dict):
        raise BadRequestError("an applied configuration is an object with metadata")
    if applied.get("metadata", {}).get("managedFields"):
        raise BadRequestError("metadata.managedFields must be nil")
    owned = _owned_fields(live)
    paths = _object_paths(applied, rules)
    _check_duplicates(applied, (), rules)
    if live is None:
        return _with_managed_fields(applied, {manager: paths}, applied, at)
    if not owned:
        owned = {BEFORE_FIRST_APPLY: _object_paths(live, rules)}
    merged = _merge(live, applied, (), rules)
    conflicts: dict[FieldManager, list[Path]] = {}
    difference = Difference(live, merged, rules)
    for other, other_paths in owned.items():
        if other == manager:
            continue
        for path in sorted(paths & other_paths):
            if difference.at(path):
                conflicts.setdefault(other, []).append(path)
    if not force and (refused := _refused(conflicts, live, manager, rules)):
        version = shown_version or live.get("apiVersion", "")
        raise _conflict(refused, version)
    for other, taken in conflicts.items():
        owned[other] = owned[other] - set(taken)
    before = owned.get(manager, set())
    others = set().union(*(found for other, found in owned.items() if other != manager))
    shared = {path[:length] for path in others | paths for length in range(1, len(path) + 1)}
    # An item that no other manager shares is removed whole, with its keys.
    merged = without_values(merged, before - shared, rules)
    owned[manager] = paths
    merged = last_applied.with_configuration(merged, applied, manager.name)
    return _with_managed_fields(merged, owned, applied, at, live)


def _refused(
    conflicts: dict[FieldManager, list[Path]],
    live: Object,
    manager: FieldManager,
    rules: MergeRules,
) -> dict[FieldManager, list[Path]]:
    """The conflicts without those in fields that the client's last apply set as they are."""
    before = last_applied.configuration(live, manager.name) if conflicts else None
    if before is None:
        return conflicts
    difference = Difference(before, live, rules)
    own = {each for each in _object_paths(before, rules) if not difference.at(each)}
    left = {
        other: [each for each in paths if each not in own] for other, paths in conflicts.items()
    }
    return {other: paths for other, paths in left.items() if paths}


def record_update(
    before: Object,
    after: Object,
    manager: FieldManager,
    at: str,
    rules: MergeRules = BUILT_IN_KINDS,
) -> Object:
    """The object after another write: the manager becomes the owner of changed fields."""
    was, now = _changed_parts(before, after)
    old, new = (_object_paths(each, rules, own_maps=True) for each in (was, now))
    difference = Difference(before, after, rules)
    changed = {path for path in new if difference.at(path)}
    lost = changed | (old - new)
    if not lost:
        return after
    entries = []
    for other, entry in _entries(before).items():
        paths = set(leaves(entry.get("fieldsV1", {})))
        kept = paths - lost
        if other == manager:
            changed |= kept
        elif kept == paths:
            entries.append(entry)
        elif kept:
            entries.append({**entry, "fieldsV1": fields_from_leaves(kept)})
    if changed:
        entries.append(_entry(manager, fields_from_leaves(changed), after, at))
    return _with_entries(after, entries)


def _changed_parts(before: Object, after: Object) -> tuple[Object, Object]:
    """What of two versions differs, down to the fields of spec, status and metadata."""
    was: Object = {}
    now: Object = {}
    for key in before.keys() | after.keys():
        old, new = before.get(key, ABSENT), after.get(key, ABSENT)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            old, new = (
                {name: each for name, each in own.items() if other.get(name, ABSENT) != each}
                for own, other in ((old, new), (new, old))
            )
        was |= {} if old is ABSENT else {key: old}
        now |= {} if new is ABSENT else {key: new}
    return was, now


def record_creation(
    obj: Object, manager: FieldManager, at: str, rules: MergeRules = BUILT_IN_KINDS
) -> Object:
    """A new object, all of whose fields the manager owns."""
    fields = object_fields(obj, rules, own_maps=True)
    return _with_entries(obj, [_entry(manager, fields, obj, at)])


class Difference:
    """What of two versions of an object differs."""

    def __init__(self, before: Object, after: Object, rules: MergeRules) -> None:
        self._before, self._after = FieldValues(before, rules), FieldValues(after, rules)
        self._rules = rules

    def at(self, path: Path) -> bool:
        """Whether a leaf changed; of an object with leaves of its own, whether it is there."""
        old, new = self._before.at(path), self._after.at(path)
        if isinstance(old, dict) and isinstance(new, dict):
            names = tuple(step[2:] for step in path if step.startswith("f:"))
            is_atomic = path[-1].startswith("f:") and self._rules.is_atomic_map(names)
            return is_atomic and old != new
        return bool(old != new)


def _check_duplicates(value: Any, path: tuple[str, ...], rules: MergeRules) -> None:
    """Reject two items of a list with the same keys."""
    if isinstance(value, dict):
        for key, each in value.items():
            _check_duplicates(each, (*path, key), rules)
    elif isinstance(value, list):
        rule = rules.list_rule(path)
        steps = [key_step(each, rule) for each in value] if rule.keys else []
        if len(set(steps)) < len(steps) and None not in steps:
            counts = Counter(steps)
            repeated = next(each for each in steps if counts[each] > 1)
            where = "." + ".".join(path)
            raise UnclassifiedError(
                f"failed to create typed patch object: {where}: duplicate entries for key "
                f"{_step_text(str(repeated))}"
            )
        for each in value:
            _check_duplicates(each, path, rules)


def _merge(live: Any, applied: Any, path: tuple[str, ...], rules: MergeRules) -> Any:
    if isinstance(live, dict) and isinstance(applied, dict):
        if rules.is_atomic_map(path):
            return applied
        merged = dict(live)
        for key, value in applied.items():
            merged[key] = _merge(live[key], value, (*path, key), rules) if key in live else value
        return merged
    if isinstance(live, list) and isinstance(applied, list):
        return _merge_lists(live, applied, path, rules)
    return applied


def _merge_lists(
    live: list[Any], applied: list[Any], path: tuple[str, ...], rules: MergeRules
) -> list[Any]:
    rule = rules.list_rule(path)
    if rule.is_set:
        known = set(map(_item_step, live))
        return [*live, *(each for each in applied if _item_step(each) not in known)]
    steps = [key_step(each, rule) for each in applied] if rule.keys else [None]
    merged = {key_step(each, rule): each for each in live}
    if None in steps or None in merged:
        return applied
    for step, each in zip(steps, applied, strict=True):
        merged[step] = _merge(merged[step], each, path, rules) if step in merged else each
    return list(merged.values())


# managedFields ---------------------------------------------------------------------------------


def _entries(obj: Object | None) -> dict[FieldManager, Object]:
    """The entries of `managedFields` by manager."""
    return {
        FieldManager(each["manager"], each["operation"], each.get("subresource", "")): each
        for each in (obj or {}).get("metadata", {}).get("managedFields", ())
    }


def _owned_fields(obj: Object | None) -> OwnedFields:
    return {
        manager: set(leaves(entry.get("fieldsV1", {}))) for manager, entry in _entries(obj).items()
    }


def _with_managed_fields(
    obj: Object, owned: OwnedFields, versioned: Object, at: str, before: Object | None = None
) -> Object:
    old = _entries(before)
    entries = []
    for manager, paths in owned.items():
        fields = fields_from_leaves(paths)
        if manager in old and old[manager].get("fieldsV1") == fields:
            entries.append(old[manager])  # An entry with the same fields keeps its time.
        elif paths:
            entries.append(_entry(manager, fields, versioned, at))
    return _with_entries(obj, entries)


def _entry(manager: FieldManager, fields: Fields, versioned: Object, at: str) -> Object:
    """An entry of `managedFields`."""
    entry = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": versioned.get("apiVersion", ""),
        "time": at,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        "subresource": manager.subresource,
    }
    return {key: value for key, value in entry.items() if value}


def _with_entries(obj: Object, entries: list[Object]) -> Object:
    # Applied ones first, then the oldest first, as in an API server.
    entries.sort(key=lambda each: (each["operation"], each.get("time", ""), each["manager"]))
    return {**obj, "metadata": {**obj.get("metadata", {}), "managedFields": entries}}


def _conflict(conflicts: dict[FieldManager, list[Path]], version: str) -> ConflictError:
    causes, lines = [], []
    for manager in sorted(conflicts):
        who = f'"{manager.name}"'
        if manager.subresource:
            who += f' with subresource "{manager.subresource}"'
        if manager.operation == "Update":
            who += f" using {version}"
        lines.append(f"conflicts with {who}:")
        for path in conflicts[manager]:
            field = "".join(map(_step_text, path))
            causes.append(StatusCause("FieldManagerConflict", f"conflict with {who}", field))
            lines.append(f"- {field}")
    if len(causes) == 1:
        text = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        text = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return ConflictError(text, causes=causes)


def _step_text(step: str) -> str:
    """A step in the syntax of messages: `.image`, `[name="app"]`."""
    if step.startswith("f:"):
        return f".{step[2:]}"
    if step.startswith("k:"):
        keys = msgspec.json.decode(step[2:])
        pairs = (f"{key}={msgspec.json.encode(value).decode()}" for key, value in keys.items())
        return f"[{','.join(pairs)}]"
    return f"[={step[2:]}]"


# Sets of fields --------------------------------------------------------------------------------

_SELF = "."
_UNMANAGED = (*SERVER_METADATA, "name", "namespace", "generation")
ABSENT = object()


def _object_paths(obj: Object, rules: MergeRules, *, own_maps: bool = False) -> set[Path]:
    return set(leaves(object_fields(obj, rules, own_maps=own_maps)))


def object_fields(
    obj: Object, rules: MergeRules = BUILT_IN_KINDS, *, own_maps: bool = False
) -> Fields:
    """The fields of an object without those that only the server sets.

    Updates own a map, such as the labels, in addition to its keys.
    """
    fields: Fields = {}
    for key, value in obj.items():
        if key in ("apiVersion", "kind"):
            continue
        if key == "metadata" and isinstance(value, dict):
            value = {name: each for name, each in value.items() if name not in _UNMANAGED}
            if not value:
                continue
        if key == "spec" and own_maps and rules is BUILT_IN_KINDS:
            spec = msgspec.json.encode(value)
            of_spec = _spec_fields if len(spec) <= CACHED_BYTES else _spec_fields.__wrapped__
            fields["f:spec"] = of_spec(spec)
        else:
            fields[f"f:{key}"] = _value_fields(value, (key,), rules, own_maps=own_maps)
    return fields


@lru_cache(maxsize=1024)
def _spec_fields(spec: bytes) -> Fields:
    """The fields of a spec in JSON; many objects, such as the pods of a workload, have equal ones.

    Like all parts of stored objects, the result is not modified.
    """
    return _value_fields(msgspec.json.decode(spec), ("spec",), BUILT_IN_KINDS, own_maps=True)


def _value_fields(
    value: Any, path: tuple[str, ...], rules: MergeRules, *, own_maps: bool
) -> Fields:
    if isinstance(value, dict) and not rules.is_atomic_map(path):
        fields = {
            f"f:{key}": _value_fields(each, (*path, key), rules, own_maps=own_maps)
            if isinstance(each, dict | list)
            else {}
            for key, each in value.items()
        }
        return {_SELF: {}, **fields} if own_maps and path[-1] in list_rules.MAPS else fields
    if isinstance(value, list):
        rule = rules.list_rule(path)
        if rule.is_set:
            return {_item_step(each): {} for each in value}
        if rule.keys:
            fields = {}
            for each in value:
                step = key_step(each, rule)
                if step is None:
                    return {}
                fields[step] = {_SELF: {}, **_value_fields(each, path, rules, own_maps=own_maps)}
            return fields
    return {}


def key_step(item: Any, rule: ListRule) -> str | None:
    """The step of a list item by its keys; None if it lacks a key."""
    if not isinstance(item, dict):
        return None
    keys = {key: item.get(key, rule.defaults.get(key)) for key in rule.apply_keys or rule.keys}
    return None if None in keys.values() else "k:" + msgspec.json.encode(keys).decode()


def _item_step(value: Any) -> str:
    return "v:" + msgspec.json.encode(value).decode()


def leaves(fields: Fields, path: Path = ()) -> Iterator[Path]:
    """The paths of all leaves; a list item is a leaf too, in addition to its fields."""
    for step, inner in fields.items():
        if step == _SELF:
            yield path
        elif inner:
            yield from leaves(inner, (*path, step))
        else:
            yield (*path, step)


def fields_from_leaves(paths: set[Path]) -> Fields:
    """The set of fields with these leaves."""
    fields: Fields = {}
    for path in sorted(paths):
        inner = fields
        for step in path:
            inner = inner.setdefault(step, {})
        if path and path[-1].startswith("k:"):
            inner[_SELF] = {}
    # An object that is owned itself, beside fields in it.
    for path in paths:
        inner = fields
        for step in path:
            inner = inner[step]
        if inner:
            inner[_SELF] = {}
    return fields


class FieldValues:
    """The values of an object by path. Each list is searched once, however many paths lead in."""

    def __init__(self, obj: Object, rules: MergeRules = BUILT_IN_KINDS) -> None:
        self._object = obj
        self._rules = rules
        self._items: dict[tuple[int, str, tuple[str, ...]], dict[str | None, Any]] = {}

    def at(self, path: Path) -> Any:
        """The value at a path, or ABSENT."""
        value: Any = self._object
        names: tuple[str, ...] = ()
        for step in path:
            if step.startswith("f:"):
                name = step[2:]
                if not isinstance(value, dict) or name not in value:
                    return ABSENT
                value, names = value[name], (*names, name)
            elif isinstance(value, list):
                value = self._items_of(value, step[:2], names).get(step, ABSENT)
                if value is ABSENT:
                    return ABSENT
            else:
                return ABSENT
        return value

    def _items_of(
        self, items: list[Any], form: str, names: tuple[str, ...]
    ) -> dict[str | None, Any]:
        key = id(items), form, names
        found = self._items.get(key)
        if found is None:
            rule = self._rules.list_rule(names)
            found = self._items[key] = {}
            for each in items:
                found.setdefault(_list_step(each, form, rule), each)
        return found


def _list_step(item: Any, form: str, rule: ListRule) -> str | None:
    """The step of a list item, by its value (`v:`) or by its keys (`k:`)."""
    return _item_step(item) if form == "v:" else key_step(item, rule)


def without_values(obj: Object, paths: Iterable[Path], rules: MergeRules = BUILT_IN_KINDS) -> Any:
    """The object without the values at these paths, and without parts that become empty."""
    removed: Fields = {}
    for path in paths:
        inner = removed
        for step in path:
            inner = inner.setdefault(step, {})
        inner[_SELF] = {}
    return _without(obj, removed, (), rules)


def _without(value: Any, removed: Fields, names: tuple[str, ...], rules: MergeRules) -> Any:
    """The value without what is removed in it; the same value if nothing is, or ABSENT."""
    if _SELF in removed:
        return ABSENT
    if isinstance(value, dict):
        left = {}
        for name, each in value.items():
            inner = removed.get(f"f:{name}")
            kept = each if inner is None else _without(each, inner, (*names, name), rules)
            if kept is each or (kept is not ABSENT and kept not in ({}, [])):
                left[name] = kept
        is_same = left.keys() == value.keys() and all(left[name] is value[name] for name in left)
        return value if is_same else left
    if isinstance(value, list):
        rule, forms = rules.list_rule(names), sorted({step[:2] for step in removed} & {"k:", "v:"})
        items = [_item_without(each, removed, forms, rule, names, rules) for each in value]
        is_same = all(new is old for new, old in zip(items, value, strict=True))
        return value if is_same else [each for each in items if each is not ABSENT]
    return value


def _item_without(
    item: Any,
    removed: Fields,
    forms: list[str],
    rule: ListRule,
    names: tuple[str, ...],
    rules: MergeRules,
) -> Any:
    for form in forms:
        inner = removed.get(_list_step(item, form, rule) or "")
        if inner is not None:
            return _without(item, inner, names, rules)
    return item
