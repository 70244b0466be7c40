"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902)."""

import copy
from typing import Any

from moorage.serve.status_errors import BadRequestError, InvalidError


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch: null removes, objects merge, any other value replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge_patch(result.get(key), value)
    return result


MAX_OPERATIONS = 10_000
_MAX_COPIES = 100  # Copies of copies grow exponentially.


def apply_json_patch(target: Any, operations: Any) -> Any:
    """The target with all operations applied; the target itself is not modified."""
    if not isinstance(operations, list):
        raise BadRequestError("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise BadRequestError(f"a JSON patch has at most {MAX_OPERATIONS} operations")
    copies = sum(isinstance(each, dict) and each.get("op") == "copy" for each in operations)
    if copies > _MAX_COPIES:
        raise BadRequestError(f"a JSON patch has at most {_MAX_COPIES} copies")
    document = copy.deepcopy(target)
    for operation in operations:
        document = _apply_operation(document, operation)
    return document


def _apply_operation(document: Any, operation: Any) -> Any:
    if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
        raise BadRequestError("every operation of a JSON patch needs `op` and `path`")
    path = _steps(operation["path"])
    match operation.get("op"):
        case "add":
            return _add(document, path, _value(operation))
        case "remove":
            return _remove(document, path)
        case "replace":
            if not path:
                return _value(operation)
            return _add(_remove(document, path), path, _value(operation))
        case "move":
            source = _source(operation)
            value = _get(document, source)
            if path[: len(source)] == source and path != source:
                raise _failed("move", operation["path"], "it cannot move into itself")
            return _add(_remove(document, source), path, value)
        case "copy":
            return _add(document, path, copy.deepcopy(_get(document, _source(operation))))
        case "test":
            if not _equal(_get(document, path), _value(operation)):
                raise _failed("test", operation["path"], "the value differs")
            return document
    raise BadRequestError(f"unknown operation of a JSON patch: {operation.get('op')!r:.60}")


def _steps(pointer: str) -> list[str]:
    if not pointer:
        return []
    if not pointer.startswith("/"):
        raise BadRequestError(f"a path of a JSON patch begins with '/': {pointer[:60]!r}")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]


def _source(operation: dict[str, Any]) -> list[str]:
    if not isinstance(operation.get("from"), str):
        raise BadRequestError(f"the operation {operation['op']} of a JSON patch needs `from`")
    return _steps(operation["from"])


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise BadRequestError(f"the operation {operation['op']} of a JSON patch needs `value`")
    return operation["value"]


def _get(document: Any, path: list[str]) -> Any:
    for step in path:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list):
            document = document[_index(document, step)]
        else:
            raise _missing(path)
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    holder, last = _get(document, path[:-1]), path[-1]
    if isinstance(holder, dict):
        holder[last] = value
    elif isinstance(holder, list):
        at = len(holder) if last == "-" else _index(holder, last, allow_end=True)
        holder.insert(at, value)
    else:
        raise _missing(path)
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        return None
    holder, last = _get(document, path[:-1]), path[-1]
    if isinstance(holder, dict) and last in holder:
        del holder[last]
    elif isinstance(holder, list):
        del holder[_index(holder, last)]
    else:
        raise _missing(path)
    return document


def _index(items: list[Any], step: str, *, allow_end: bool = False) -> int:
    if step.isascii() and step.isdecimal() and len(step) < 10:
        index = int(step)
        if index < len(items) + allow_end:
            return index
    raise InvalidError(f"the server rejected our request: no item {step[:60]!r} in a list")


def _equal(a: Any, b: Any) -> bool:
    # In Python True equals 1, in JSON it does not.
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _missing(path: list[str]) -> InvalidError:
    where = "/" + "/".join(path)
    return InvalidError(f"the server rejected our request: there is nothing at {where[:100]!r}")


def _failed(what: str, path: str, why: str) -> InvalidError:
    return InvalidError(f"the server rejected our request: {what} {path[:100]!r}: {why}")
