"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902)."""

from typing import Any

import msgspec

from moorage.cluster.status_errors import BadRequestError, InvalidError, TooLargeError


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


# An API server says only this.
_REFUSED = "the server rejected our request due to an error in our request"
MAX_OPERATIONS = 10_000
MAX_COPIED = 3 * 1024 * 1024
"""Bytes of JSON that all copies of a patch may add; copies of copies grow exponentially."""
MAX_SHIFTED = 50_000_000
"""List items that all insertions and removals of a patch may shift."""


def apply_json_patch(target: Any, operations: Any) -> Any:
    """The target with all operations applied; the target itself is not modified."""
    if not isinstance(operations, list):
        raise BadRequestError("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise BadRequestError(f"a JSON patch has at most {MAX_OPERATIONS} operations")
    patched = _PatchedDocument(msgspec.json.decode(msgspec.json.encode(target)))
    for operation in operations:
        patched.apply(operation)
    return patched.document


class _PatchedDocument:
    """A document while operations are applied to it, and the work that this took."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self._copied = 0
        self._shifted = 0

    def apply(self, operation: Any) -> None:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise BadRequestError("every operation of a JSON patch needs `op` and `path`")
        path = _steps(operation["path"])
        match operation.get("op"):
            case "add":
                self._add(path, _value(operation))
            case "remove":
                self._remove(path)
            case "replace":
                self._remove(path)
                self._add(path, _value(operation))
            case "move":
                source = _source(operation)
                value = _get(self.document, source)
                if path[: len(source)] == source and path != source:
                    raise _failed("move", operation["path"], "it cannot move into itself")
                self._remove(source)
                self._add(path, value)
            case "copy":
                self._add(path, self._copy(_get(self.document, _source(operation))))
            case "test":
                if not _equal(_get(self.document, path), _value(operation)):
                    raise _failed("test", operation["path"], "the value differs")
            case other:
                raise InvalidError(f"{_REFUSED}: unknown operation {other!r:.60}")

    def _copy(self, value: Any) -> Any:
        encoded = msgspec.json.encode(value)
        self._copied += len(encoded)
        if self._copied > MAX_COPIED:
            raise TooLargeError(f"the copies of a JSON patch have more than {MAX_COPIED} bytes")
        return msgspec.json.decode(encoded)

    def _add(self, path: list[str], value: Any) -> None:
        if not path:
            self.document = value
            return
        holder, last = _get(self.document, path[:-1]), path[-1]
        if isinstance(holder, dict):
            holder[last] = value
        elif isinstance(holder, list):
            at = len(holder) if last == "-" else _index(holder, last, allow_end=True)
            self._shift(holder, at)
            holder.insert(at, value)
        else:
            raise _missing(path)

    def _remove(self, path: list[str]) -> None:
        if not path:
            self.document = None
            return
        holder, last = _get(self.document, path[:-1]), path[-1]
        if isinstance(holder, dict) and last in holder:
            del holder[last]
        elif isinstance(holder, list):
            at = _index(holder, last)
            self._shift(holder, at)
            del holder[at]
        else:
            raise _missing(path)

    def _shift(self, holder: list[Any], at: int) -> None:
        self._shifted += len(holder) - at
        if self._shifted > MAX_SHIFTED:
            raise TooLargeError(f"a JSON patch shifts more than {MAX_SHIFTED} list items")


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


def _index(items: list[Any], step: str, *, allow_end: bool = False) -> int:
    if step.isascii() and step.isdecimal() and len(step) < 10:
        index = int(step)
        if index < len(items) + allow_end:
            return index
    raise InvalidError(f"{_REFUSED}: no item {step[:60]!r} in a list")


def _equal(a: Any, b: Any) -> bool:
    # In Python True equals 1, in JSON it does not.
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _missing(path: list[str]) -> InvalidError:
    where = "/" + "/".join(path)
    return InvalidError(f"{_REFUSED}: there is nothing at {where[:100]!r}")


def _failed(what: str, path: str, why: str) -> InvalidError:
    return InvalidError(f"{_REFUSED}: {what} {path[:100]!r}: {why}")
