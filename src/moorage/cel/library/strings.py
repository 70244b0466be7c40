"""Functions on strings: the standard ones, extension version 2, and regular expressions.

Regular expressions run on RE2 (package google-re2, 1.6 MB), the engine family of the reference: the
same syntax, and a time linear in the text. Python's `re` backtracks: `(a+)+$` could stop the
scheduler.
"""

from functools import lru_cache
from typing import Any

from moorage.cel.library.formatting import formatted, quoted
from moorage.cel.types import define, double_traversal, overload, tenths, traversal
from moorage.cel.values import CelRuntimeError, no_such_overload, weight


def _affix_cost(_: str, affix: str) -> int:
    return tenths(len(affix))


def _product_cost(text: str, part: str) -> int:
    return tenths(len(text)) * tenths(len(part))


def _regex_cost(text: str, pattern: str, *_: Any) -> int:
    return tenths(1 + len(text)) * -(-len(pattern) // 4)


def _replace_cost(text: str, old: str, new: str, *_: Any) -> int:
    # The reference charges for the text only. The result may be much longer.
    return tenths(2 * len(text)) + len(text) // max(1, len(old)) * len(new) // 10


def _at(text: str, index: int) -> int:
    if not 0 <= index <= len(text):
        raise CelRuntimeError(f"index out of range: {index}")
    return index


def _index_of(text: str, part: str, start: int) -> int:
    if part == "":
        return start
    return text.find(part, start) if _at(text, min(start, len(text))) < len(text) else -1


def _last_index_of(text: str, part: str, last: int) -> int:
    if part == "":
        return last
    return (
        text.rfind(part, 0, last + len(part)) if _at(text, min(last, len(text))) < len(text) else -1
    )


@overload("list<string>.join() -> string", cost=weight)
@overload(
    "list<string>.join(string) -> string",
    cost=lambda items, separator: weight(items) + tenths(len(items) * len(separator)),
)
def join(items: list[str], separator: str = "") -> str:
    """The strings in one, with a separator between them."""
    if not all(isinstance(item, str) for item in items):
        raise no_such_overload()
    return separator.join(items)


@overload(
    "string.replace(string, string) -> string",
    "string.replace(string, string, int) -> string",
    cost=_replace_cost,
)
def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    """The text with a part replaced, at most `limit` times."""
    return text.replace(old, new, max(limit, -1))


@overload("string.split(string) -> list<string>", cost=double_traversal)
@overload("string.split(string, int) -> list<string>", cost=double_traversal)
def split(text: str, separator: str, limit: int = -1) -> list[str]:
    """The parts of a text, at most `limit`; without a separator its characters."""
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    parts = list(text)
    return parts if limit < 0 or len(parts) <= limit else [*parts[: limit - 1], text[limit - 1 :]]


def _substring(text: str, start: int, end: int) -> str:
    if _at(text, start) > _at(text, end):
        raise CelRuntimeError(f"invalid substring range. start: {start}, end: {end}")
    return text[start:end]


# Only ASCII letters change case, so `str.lower` will not do.
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}

for _kind in ("string", "bytes"):
    define(
        f"+({_kind}, {_kind}) -> {_kind}",
        run=lambda a, b: a + b,
        cost=lambda a, b: tenths(len(a) + len(b)),
    )
define("string.contains(string) -> bool", run=lambda text, part: part in text, cost=_product_cost)
define("string.startsWith(string) -> bool", run=str.startswith, cost=_affix_cost)
define("string.endsWith(string) -> bool", run=str.endswith, cost=_affix_cost)
define("string.charAt(int) -> string", run=lambda text, i: text[_at(text, i) : i + 1])
define("string.indexOf(string) -> int", run=str.find, cost=traversal)
define("string.indexOf(string, int) -> int", run=_index_of, cost=traversal)
define("string.lastIndexOf(string) -> int", run=str.rfind, cost=traversal)
define("string.lastIndexOf(string, int) -> int", run=_last_index_of, cost=traversal)
define("string.lowerAscii() -> string", run=lambda text: text.translate(_LOWER), cost=traversal)
define("string.upperAscii() -> string", run=lambda text: text.translate(_UPPER), cost=traversal)
define("string.substring(int, int) -> string", run=_substring, cost=traversal)
define("string.substring(int) -> string", run=lambda t, i: t[_at(t, i) :], cost=traversal)
define("string.trim() -> string", run=str.strip, cost=traversal)
define(
    "string.format(list<dyn>) -> string",
    run=formatted,
    cost=lambda template, items: tenths(len(template)) + weight(items),
)
define("strings::quote(string) -> string", run=quoted, cost=traversal)


# Reasons of the engine and, where they differ, those of the reference.
_REASONS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}


def compiled(pattern: str) -> Any:
    """A compiled regular expression; raises CelRuntimeError."""
    # A pattern that an expression builds may be long; it is not kept.
    return _compiled(pattern) if len(pattern) < 1000 else _compiled.__wrapped__(pattern)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import re2  # type: ignore[import-untyped]  # Loaded by the first expression that needs it.

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        what = error.args[0]
        text = what.decode(errors="replace") if isinstance(what, bytes) else str(what)
        why, _, where = text.partition(": ")
        raise CelRuntimeError(
            f"error parsing regexp: {_REASONS.get(why, why)}: `{where}`"
        ) from None


@overload("matches(string, string) -> bool", "string.matches(string) -> bool", cost=_regex_cost)
def matches(text: str, pattern: str) -> bool:
    """Whether a part of the text matches."""
    # Of bytes, because the package is slow to find the places in a str.
    return compiled(pattern).search(text.encode()) is not None


@overload("string.find(string) -> string", cost=_regex_cost)
def find(text: str, pattern: str) -> str:
    """The first match, or an empty string."""
    match = compiled(pattern).search(text.encode())
    return match.group().decode(errors="replace") if match else ""


def _find_all_cost(text: str, pattern: str, *_: Any) -> int:
    return len(text) + _regex_cost(text, pattern)  # Each match takes time of its own.


@overload("string.findAll(string) -> list<string>", cost=_find_all_cost)
@overload("string.findAll(string, int) -> list<string>", cost=_find_all_cost)
def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """All matches, or the first `limit`."""
    found: list[str] = []
    end = -1
    for match in compiled(pattern).finditer(text):
        if len(found) == limit:
            break
        # The reference has no empty match directly behind another match.
        if match.group() or match.start() != end:
            found.append(match.group())
        end = match.end()
    return found
