"""Functions on strings: the standard ones, extension version 2, and regular expressions.

Regular expressions run on RE2 (package google-re2), the engine family of the reference: the same
syntax, and a time linear in the text. Python's `re` backtracks, so that a pattern such as `(a+)+$`
stops the scheduler.
"""

from functools import lru_cache
from typing import Any

from moorage.cel.library.formatting import formatted, quoted
from moorage.cel.types import overload, traversal
from moorage.cel.values import CelRuntimeError, CostLimitExceeded, no_such_overload, size_of

_LONGEST = 10_000_000  # characters; a longer result exceeds the cost limit anyway


def _both(values: tuple[Any, ...], _: Any) -> int:
    return -(-(size_of(values[0]) + size_of(values[1])) // 10)


def _contains_cost(values: tuple[Any, ...], _: Any) -> int:
    return -(-size_of(values[0]) // 10) * -(-size_of(values[1]) // 10)


def _regex_cost(values: tuple[Any, ...], _: Any) -> int:
    return -(-(1 + size_of(values[0])) // 10) * -(-size_of(values[1]) // 4)


@overload("+(string, string) -> string", "+(bytes, bytes) -> bytes", cost=_both)
def add(a: Any, b: Any) -> Any:
    _bounded(len(a) + len(b))
    return a + b


@overload("string.contains(string) -> bool", cost=_contains_cost)
def contains(text: str, part: str) -> bool:
    return part in text


@overload("string.startsWith(string) -> bool", cost=lambda v, _: -(-size_of(v[1]) // 10))
def starts_with(text: str, prefix: str) -> bool:
    return text.startswith(prefix)


@overload("string.endsWith(string) -> bool", cost=lambda v, _: -(-size_of(v[1]) // 10))
def ends_with(text: str, suffix: str) -> bool:
    return text.endswith(suffix)


@overload("string.charAt(int) -> string")
def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelRuntimeError(f"index out of range: {index}")
    return text[index : index + 1]


@overload("string.indexOf(string) -> int", "string.indexOf(string, int) -> int", cost=traversal())
def index_of(text: str, part: str, start: int = 0) -> int:
    # An offset at or behind the end finds nothing but the empty string.
    if not 0 <= start <= len(text) and not (part == "" and start == 0):
        raise CelRuntimeError(f"index out of range: {start}")
    return text.find(part, start)


@overload(
    "string.lastIndexOf(string) -> int", "string.lastIndexOf(string, int) -> int", cost=traversal()
)
def last_index_of(text: str, part: str, end: int | None = None) -> int:
    if end is None:
        return text.rfind(part)
    if not 0 <= end <= len(text):
        raise CelRuntimeError(f"index out of range: {end}")
    return text.rfind(part, 0, end + len(part))


@overload(
    "list<string>.join() -> string",
    "list<string>.join(string) -> string",
    cost=lambda _, r: -(-len(r) // 5),
)
def join(items: list[str], separator: str = "") -> str:
    if not all(isinstance(item, str) for item in items):
        raise no_such_overload()
    _bounded(sum(map(len, items)) + len(items) * len(separator))
    return separator.join(items)


# Only ASCII letters change, so `str.lower` will not do.
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


@overload("string.lowerAscii() -> string", cost=traversal())
def lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


@overload("string.upperAscii() -> string", cost=traversal())
def upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


@overload(
    "string.replace(string, string) -> string",
    "string.replace(string, string, int) -> string",
    cost=lambda values, result: -(-(len(values[0]) + len(result)) // 10),
)
def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    _bounded(len(text) + (len(text) // max(1, len(old)) + 1) * len(new))
    return text.replace(old, new, limit)


@overload(
    "string.split(string) -> list<string>",
    "string.split(string, int) -> list<string>",
    cost=traversal(2),
)
def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    parts = list(text)
    return parts if limit < 0 or len(parts) <= limit else [*parts[: limit - 1], text[limit - 1 :]]


@overload(
    "string.substring(int) -> string", "string.substring(int, int) -> string", cost=traversal()
)
def substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= len(text) or not 0 <= end <= len(text):
        raise CelRuntimeError(f"index out of range: {end if 0 <= start <= len(text) else start}")
    if start > end:
        raise CelRuntimeError(f"invalid substring range. start: {start}, end: {end}")
    return text[start:end]


@overload("string.trim() -> string", cost=traversal())
def trim(text: str) -> str:
    return text.strip()


@overload("string.format(list<dyn>) -> string", cost=lambda _, result: -(-len(result) // 10))
def format_(template: str, args: list[Any]) -> str:
    return formatted(template, args)


@overload("strings::quote(string) -> string", cost=traversal())
def quote(text: str) -> str:
    return quoted(text)


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """A compiled regular expression; raises CelRuntimeError."""
    import re2  # type: ignore[import-untyped]  # Loaded by the first expression that needs it.

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeError) as error:
        detail = error.args[0] if error.args else pattern
        text = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
        raise CelRuntimeError(f"error parsing regexp: {text}") from None


@overload("matches(string, string) -> bool", "string.matches(string) -> bool", cost=_regex_cost)
def matches(text: str, pattern: str) -> bool:
    return compiled(pattern).search(_utf8(text)) is not None


@overload("string.find(string) -> string", cost=_regex_cost)
def find(text: str, pattern: str) -> str:
    match = compiled(pattern).search(_utf8(text))
    return match.group() if match else ""


@overload(
    "string.findAll(string) -> list<string>",
    "string.findAll(string, int) -> list<string>",
    cost=_regex_cost,
)
def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found: list[str] = []
    end = -1
    for match in compiled(pattern).finditer(_utf8(text)):
        if len(found) == limit:
            break
        # The reference has no empty match directly behind another match.
        if match.group() or match.start() != end:
            found.append(match.group())
        end = match.end()
    return found


def _utf8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CelRuntimeError("invalid UTF-8 in string") from None
    return text


def _bounded(length: int) -> None:
    if length > _LONGEST:
        raise CostLimitExceeded
