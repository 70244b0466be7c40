"""Server-side apply: each manager says what it wants, and owns the fields it said.

An object gets `managedFields` when somebody first applies it. From then on, other writes are
booked too, so that a later apply can tell whose field it is about to take. Objects that nobody
applies carry none: an API server books every write of every object.
"""

from typing import Any, NamedTuple

import msgspec

from moorage.serve.controllers.objects import Object
from moorage.serve.patches import field_sets, list_rules
from moorage.serve.patches.field_sets import ABSENT, Path
from moorage.serve.refusals import BadRequest, Cause, Conflict


class Manager(NamedTuple):
    """Who writes, and how: `Apply` or `Update`, perhaps through a subresource."""

    name: str
    operation: str
    subresource: str = ""


def apply(live: Object | None, wanted: Any, manager: Manager, *, at: str, force: bool) -> Object:
    """The object after an apply; raises Conflict if a field is another manager's."""
    if not isinstance(wanted, dict) or not isinstance(wanted.get("metadata", {}), dict):
        raise BadRequest("an applied configuration is an object with metadata")
    if wanted.get("metadata", {}).get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    owned = _read(live)
    said = set(field_sets.leaves(field_sets.of_object(wanted)))
    if live is None:
        return _booked(wanted, {manager: said}, wanted, at)
    merged = _merge(live, wanted, ())
    conflicts: dict[Manager, list[Path]] = {}
    for other, paths in owned.items():
        if other == manager:
            continue
        for path in sorted(said & paths):
            if field_sets.find(live, path) != field_sets.find(merged, path):
                conflicts.setdefault(other, []).append(path)
    if conflicts and not force:
        raise _conflict(conflicts)
    for other, taken in conflicts.items():
        owned[other] = owned[other] - set(taken)
    before = owned.get(manager, set())
    others = set().union(*(paths for other, paths in owned.items() if other != manager))
    # The shortest first: an item that nobody else has a part in goes whole, its keys with it.
    for path in sorted(before - said - others, key=len):
        if field_sets.find(merged, path) is not ABSENT:
            merged = field_sets.remove(merged, path)
    owned[manager] = said
    return _booked(merged, owned, wanted, at, live)


def book(before: Object, after: Object, manager: Manager, at: str) -> Object:
    """The object after any other write, its changed fields booked on whoever wrote them."""
    owned = _read(before)
    if not owned:
        return after
    old = set(field_sets.leaves(field_sets.of_object(before)))
    new = set(field_sets.leaves(field_sets.of_object(after)))
    changed = {
        path for path in new if field_sets.find(before, path) != field_sets.find(after, path)
    }
    if not changed and not old - new:
        return after
    owned = {who: (paths - changed) & new for who, paths in owned.items()}
    owned[manager] = owned.get(manager, set()) | changed
    return _booked(after, owned, after, at, before)


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
    steps = [field_sets.key_step(each, rule) for each in wanted] if rule.keys else [None]
    if None in steps:
        return wanted
    merged = {field_sets.key_step(each, rule): each for each in live}
    if None in merged:
        return wanted
    for step, each in zip(steps, wanted, strict=True):
        merged[step] = _merge(merged[step], each, path) if step in merged else each
    return list(merged.values())


class Entry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One entry of `managedFields`."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: str = ""
    fields_type: str = ""
    fields_v1: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)
    subresource: str = ""


def _read(obj: Object | None) -> dict[Manager, set[Path]]:
    if obj is None:
        return {}
    owned = {}
    for each in obj["metadata"].get("managedFields", ()):
        entry = msgspec.convert(each, Entry)
        who = Manager(entry.manager, entry.operation, entry.subresource)
        owned[who] = set(field_sets.leaves(entry.fields_v1))
    return owned


def _booked(
    obj: Object,
    owned: dict[Manager, set[Path]],
    versioned: Object,
    at: str,
    before: Object | None = None,
) -> Object:
    old = {}
    for each in (before or {}).get("metadata", {}).get("managedFields", ()):
        who = Manager(each["manager"], each["operation"], each.get("subresource", ""))
        old[who] = each
    entries = []
    for who, paths in owned.items():
        if not paths:
            continue
        entry = Entry(
            manager=who.name,
            operation=who.operation,
            api_version=versioned.get("apiVersion", ""),
            time=at,
            fields_type="FieldsV1",
            fields_v1=field_sets.from_leaves(paths),
            subresource=who.subresource,
        )
        told = msgspec.to_builtins(entry)
        if who in old and old[who].get("fieldsV1") == told["fieldsV1"]:
            told = old[who]  # Nothing changed for this one: its time stays.
        entries.append(told)
    return {**obj, "metadata": {**obj.get("metadata", {}), "managedFields": entries}}


def _conflict(conflicts: dict[Manager, list[Path]]) -> Conflict:
    causes = []
    for who, paths in conflicts.items():
        through = f' with subresource "{who.subresource}"' if who.subresource else ""
        text = f'conflict with "{who.name}"{through}'
        causes += [
            Cause("FieldManagerConflict", text, "".join(_shown(step) for step in path))
            for path in paths
        ]
    count = len(causes)
    lines = "\n".join(f"- {cause.field}" for cause in causes)
    first = causes[0].message
    text = f"Apply failed with {count} conflict{'s' if count > 1 else ''}: "
    text += f"{first}: {causes[0].field}" if count == 1 else f"conflicts:\n{lines}"
    return Conflict(text, causes=causes)


def _shown(step: str) -> str:
    """A step as people read it: `.image`, `[name="app"]`."""
    if step.startswith("f:"):
        return f".{step[2:]}"
    if step.startswith("k:"):
        keys = msgspec.json.decode(step[2:])
        told = (f"{key}={msgspec.json.encode(value).decode()}" for key, value in keys.items())
        return f"[{','.join(told)}]"
    return f"[={step[2:]}]"
