"""Strategic merge patch: lists of containers, ports, conditions merge item by item.

$patch: replace | delete | merge     in an object, or in an item of a list
$deleteFromPrimitiveList/FIELD       items to remove from a set
$setElementOrder/FIELD               the order of the merged list
$retainKeys                          drop all other keys of the object
"""

from typing import Any

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
        merged = [*before, *(each for each in patch if each not in before)]
        listed = patch
    elif rule.keys and all(isinstance(each, dict) for each in patch):
        merged = _merge_items(before, patch, rule.key, path)
        listed = [each for each in patch if each.get(_PATCH) not in ("delete", "replace")]
    else:
        return [_without_directives(each) for each in patch]
    if order is None:
        return _ordered(merged, listed, before, rule)
    order = _list(order, _ORDER)
    positions = [_position(each, order, rule) for each in listed]
    if -1 in positions or positions != sorted(positions):
        raise UnclassifiedError(
            f"The order in patch list:\n{_go_text(listed)}\n doesn't match $setElementOrder list:"
            f"\n{_go_text(order)}\n"
        )
    return _ordered(merged, order, before, rule)


def _merge_items(target: list[Any], patch: list[Map], key: str, path: tuple[str, ...]) -> list[Any]:
    items = list(target)
    if any(each.get(_PATCH) == "replace" for each in patch):
        return [_without_directives(each) for each in patch if _PATCH not in each]
    for each in patch:
        if key not in each:
            text = f"map: {_go_text(each)} does not contain declared merge key: {key}"
            raise UnclassifiedError(text)
        at = next((i for i, item in enumerate(items) if _has(item, key, each[key])), None)
        if each.get(_PATCH) == "delete":
            if at is not None:
                del items[at]
        elif at is None:
            items.append(_merge_map({}, each, path))
        else:
            items[at] = _merge_map(items[at], each, path)
    return items


def _has(item: Any, key: str, value: Any) -> bool:
    return isinstance(item, dict) and key in item and item[key] == value


def _ordered(
    items: list[Any], order: list[Any], before: list[Any], rule: list_rules.ListRule
) -> list[Any]:
    """Sort the items that the patch lists as it lists them, and weave in the others.

    As in Kubernetes: an item that the patch does not list comes before the next listed one that
    stood behind it, so that new items come first.
    """
    listed = [each for each in items if _position(each, order, rule) >= 0]
    listed.sort(key=lambda each: _position(each, order, rule))
    others = [each for each in items if _position(each, order, rule) < 0]
    others.sort(key=lambda each: _position(each, before, rule))
    result = []
    for each in listed:
        at = _position(each, before, rule)
        while others and _position(others[0], before, rule) < at:
            result.append(others.pop(0))
        result.append(each)
    return result + others


def _position(item: Any, order: list[Any], rule: list_rules.ListRule) -> int:
    """The position of an item in a list, by its key or its value; -1 if it is not there."""
    for index, each in enumerate(order):
        same = item == each
        if rule.keys and isinstance(each, dict) and isinstance(item, dict):
            same = rule.key in each and each[rule.key] == item.get(rule.key)
        if same:
            return index
    return -1


def _delete_from(result: Map, field: str, removed: list[Any]) -> None:
    existing = result.get(field)
    if isinstance(existing, list):
        result[field] = [each for each in existing if each not in removed]


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
