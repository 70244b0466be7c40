"""Sets of fields, in the form in which `managedFields` writes them.

    {"f:spec": {"f:containers": {"k:{\\"name\\":\\"app\\"}": {".": {}, "f:image": {}}}}}

`f:` is a field, `k:` an item of a list by its keys, `v:` an item of a set. A leaf is empty.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from moorage.serve.patches import list_rules
from moorage.serve.patches.list_rules import KEY_DEFAULTS, ListRule

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


def of_object(obj: dict[str, Any]) -> Fields:
    """The fields that an object states, but for those that only the server decides."""
    fields: Fields = {}
    for key, value in obj.items():
        if key in ("apiVersion", "kind"):
            continue
        if key == "metadata" and isinstance(value, dict):
            value = {name: each for name, each in value.items() if name not in _UNMANAGED}
            if not value:
                continue
        fields[f"f:{key}"] = _of(value, (key,))
    return fields


def _of(value: Any, path: tuple[str, ...]) -> Fields:
    if isinstance(value, dict) and path[-1] not in list_rules.WHOLE_MAPS:
        return {f"f:{key}": _of(each, (*path, key)) for key, each in value.items()}
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
                fields[step] = {_HERE: {}, **_of(each, path)}
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


def from_leaves(paths: Iterator[Path] | set[Path]) -> Fields:
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


def find(obj: Any, path: Path, names: tuple[str, ...] = ()) -> Any:
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


def remove(obj: Any, path: Path, names: tuple[str, ...] = ()) -> Any:
    """The object without what is at a path; parts that become empty go as well."""
    step, rest = path[0], path[1:]
    kind, text = step[:2], step[2:]
    if kind == "f:" and isinstance(obj, dict) and text in obj:
        inner = remove(obj[text], rest, (*names, text)) if rest else ABSENT
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
                kept.append(remove(each, rest, names))
        return kept
    return obj
