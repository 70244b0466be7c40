"""Strategic merge patch: lists of containers, ports, conditions merge item by item.

$patch: replace | delete | merge     in an object, or in an item of a list
$deleteFromPrimitiveList/FIELD       items to remove from a set
$setElementOrder/FIELD               the order of the merged list
$retainKeys                          drop all other keys of the object
"""

from collections import deque
from collections.abc import Hashable
from typing import Any

import msgspec

from moorage.cluster.patches import list_rules
from moorage.cluster.status_errors import BadRequestError, UnclassifiedError

_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"
_PATCH = "$patch"

Map = dict[str, Any]


def apply(target: Map, patch: Any) -> Map:
    """The target with the patch applied; modifies neither."""
    if not isinstance(patch, dict):
        raise BadRequestError("a strategic merge patch is an object")
    return _merge_map(target, patch, ())


def _merge_map(target: Map, patch: Map, path: tuple[str, ...]) -> Map:
    match patch.get(_PATCH):
        case "replace":
            return {
                key: _without_directives(value)
                for key, value in patch.items()
                if not key.startswith("$")
            }
        case "delete":
            return {}
        case None | "merge":
            pass
        case other:
            raise UnclassifiedError(f"unknown patch type: {other!s:.60} in map: {_go_text(patch)}")
    result = dict(target)
    if _RETAIN in patch:
        retained = _list(patch[_RETAIN], _RETAIN)
        if any(key not in retained for key in patch if not key.startswith("$")):
            raise BadRequestError("invalid patch format of retainKeys")
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key in (_PATCH, _RETAIN) or key.startswith(_ORDER):
            continue
        if key.startswith(_DELETE_FROM):
            _delete_from(result, key.removeprefix(_DELETE_FROM), _list(value, key))
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and _PATCH in value and key not in result:
            pass  # There is nothing to replace or to delete: an API server drops the object.
        else:
            order = patch.get(f"{_ORDER}{key}")
            result[key] = _merge_value(result.get(key), value, order, (*path, key))
    for key in patch:
        field = key.removeprefix(_ORDER)
        if field != key and field not in patch and isinstance(result.get(field), list):
            rule = list_rules.rule((*path, field))
            order = _list(patch[key], key)
            result[field] = _ordered(result[field], order, result[field], rule)
    return result


def _merge_value(target: Any, patch: Any, order: Any, path: tuple[str, ...]) -> Any:
    if isinstance(patch, dict):
        return _merge_map(target if isinstance(target, dict) else {}, patch, path)
    if not isinstance(patch, list):
        return patch
    rule = list_rules.rule(path)
    before = target if isinstance(target, list) else []
    if rule.is_set:
        known = set(map(_identity, before))
        merged = [*before, *(each for each in patch if _identity(each) not in known)]
        listed = patch
    elif rule.keys and all(isinstance(each, dict) for each in patch):
        merged = _merge_items(before, patch, rule.key, path)
        listed = [each for each in patch if each.get(_PATCH) not in ("delete", "replace")]
    else:
        return [_without_directives(each) for each in patch]
    if order is None:
        return _ordered(merged, listed, before, rule)
    order = _list(order, _ORDER)
    of_order = _Positions(order, rule)
    positions = [of_order.of(each) for each in listed]
    if -1 in positions or positions != sorted(positions):
        raise UnclassifiedError(
            f"The order in patch list:\n{_go_text(listed)}\n doesn't match $setElementOrder list:"
            f"\n{_go_text(order)}\n"
        )
    return _ordered(merged, order, before, rule)


def _merge_items(target: list[Any], patch: list[Map], key: str, path: tuple[str, ...]) -> list[Any]:
    """The items with the patch: first all deletions, then the other items in order."""
    deleted, merged = set(), []
    for each in patch:
        match each.get(_PATCH):
            case "delete":
                deleted.add(_identity(_key_value(each, key)))
            case None:
                merged.append(each)
            case "merge":
                raise UnclassifiedError("merging lists cannot yet be specified in the patch")
            case "replace":
                pass
            case other:
                text = f"unknown patch type: {other!s:.60} in map: {_go_text(each)}"
                raise UnclassifiedError(text)
    if any(each.get(_PATCH) == "replace" for each in patch):
        return [_without_directives(each) for each in merged]
    items: list[Any] = []
    index: dict[Hashable, int] = {}
    for item in target:
        if (identity := _item_identity(item, key)) not in deleted:
            index.setdefault(identity, len(items))
            items.append(item)
    for each in merged:
        identity = _identity(_key_value(each, key))
        if identity in index:
            at = index[identity]
            items[at] = _merge_map(items[at], each, path)
        else:
            index[identity] = len(items)
            items.append(_merge_map({}, each, path))
    return items


def _key_value(item: Map, key: str) -> Any:
    if key not in item:
        text = f"map: {_go_text(item)} does not contain declared merge key: {key}"
        raise UnclassifiedError(text)
    return item[key]


def _identity(value: Any) -> Hashable:
    """What two equal values have in common."""
    return msgspec.json.encode(value, order="sorted") if isinstance(value, dict | list) else value


_NONE = object()


def _item_identity(item: Any, key: str) -> Hashable:
    """The identity of an item by its key; one without it equals no other."""
    return _identity(item[key]) if isinstance(item, dict) and key in item else _NONE


def _ordered(
    items: list[Any], order: list[Any], before: list[Any], rule: list_rules.ListRule
) -> list[Any]:
    """Sort the items that the patch lists as it lists them, and weave in the others.

    As in Kubernetes: an item that the patch does not list comes before the next listed one that
    stood behind it, so that new items come first.
    """
    of_order, of_before = _Positions(order, rule), _Positions(before, rule)
    listed = [each for each in items if of_order.of(each) >= 0]
    listed.sort(key=of_order.of)
    others = deque(sorted((each for each in items if of_order.of(each) < 0), key=of_before.of))
    result = []
    for each in listed:
        at = of_before.of(each)
        while others and of_before.of(others[0]) < at:
            result.append(others.popleft())
        result.append(each)
    return [*result, *others]


class _Positions:
    """The positions of the items of a list, by their key or their value."""

    def __init__(self, items: list[Any], rule: list_rules.ListRule) -> None:
        self._key = rule.key if rule.keys else ""
        self._found: dict[Hashable, int] = {}
        for position, item in enumerate(items):
            self._found.setdefault(self._identity(item), position)

    def of(self, item: Any) -> int:
        """The position of the first equal item; -1 if there is none."""
        return self._found.get(self._identity(item), -1)

    def _identity(self, item: Any) -> Hashable:
        if self._key and isinstance(item, dict) and self._key in item:
            return True, _identity(item[self._key])
        return False, _identity(item)


def _delete_from(result: Map, field: str, removed: list[Any]) -> None:
    existing = result.get(field)
    if isinstance(existing, list):
        gone = set(map(_identity, removed))
        result[field] = [each for each in existing if _identity(each) not in gone]


def _without_directives(value: Any) -> Any:
    """A new value without directives and nulls: there is no target to apply them to."""
    if isinstance(value, dict):
        return {
            key: _without_directives(each)
            for key, each in value.items()
            if each is not None and not key.startswith("$")
        }
    return [_without_directives(each) for each in value] if isinstance(value, list) else value


def _go_text(value: Any) -> str:
    """A value as the messages of an API server print it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_go_text(value[key])}' for key in sorted(value))}]"
    return f"[{' '.join(map(_go_text, value))}]" if isinstance(value, list) else str(value)


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadRequestError(f"{name} has to be a list")
    return value
