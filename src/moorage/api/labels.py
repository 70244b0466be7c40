"""Validation of label keys, label values and requirements, with the API server's texts.

The functions return error texts, none if the value is valid.
"""

import json
import re
from functools import lru_cache

from moorage.api.quantity import INT64_MAX, INT64_MIN

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"

_is_name = re.compile(_NAME).fullmatch
_is_value = re.compile(_VALUE).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_integer = re.compile(r"[+-]?[0-9]{1,400}").fullmatch

_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_KEY_RULE = (
    f"a valid label key {_NAME_RULE} "
    "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    "'-' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LONGEST_NAME = 63
_LONGEST_SUBDOMAIN = 253


@lru_cache(maxsize=16384)
def key_problems(key: str) -> tuple[str, ...]:
    """The errors of a label key, which may have a prefix: `example.com/name`."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return (_KEY_RULE,)
    problems = _prefix_problems(prefix) if slash else []
    if not name:
        problems.append("name part must be non-empty")
    problems += (f"name part {problem}" for problem in _length_problems(name, _LONGEST_NAME))
    if not _is_name(name):
        problems.append(f"name part {_NAME_RULE}")
    return tuple(problems)


@lru_cache(maxsize=16384)
def value_problems(value: str) -> tuple[str, ...]:
    """The errors of a label value; an empty one is valid."""
    too_long = _length_problems(value, _LONGEST_NAME)
    return too_long if _is_value(value) else (*too_long, _VALUE_RULE)


def subdomain_problems(name: str) -> tuple[str, ...]:
    """The errors of a DNS subdomain, the rule for most objects' names."""
    too_long = _length_problems(name, _LONGEST_SUBDOMAIN)
    return too_long if _is_subdomain(name) else (*too_long, _SUBDOMAIN_RULE)


def requirement_problems(
    key: str, operator: str, values: tuple[str, ...], path: str = ""
) -> list[str]:
    """The errors of a requirement with a known operator; each text begins with `path`."""
    problems = []
    if wrong := key_problems(key):
        problems.append(invalid(f"{path}key", key, "; ".join(wrong)))
    problems += _count_problems(operator, values, f"{path}values")
    for i, value in enumerate(values):
        if wrong := value_problems(value):
            problems.append(invalid(f"{path}values[{i}][{key}]", value, "; ".join(wrong)))
    return problems


def invalid(path: str, value: str | tuple[str, ...], rule: str) -> str:
    """The API server's text for an invalid value."""
    return f"{path}: Invalid value: {quote(value)}: {rule}"


def quote(value: str | tuple[str, ...]) -> str:
    """A text or a list of texts as the API server's errors show it."""
    return json.dumps(value or None if isinstance(value, tuple) else value, separators=(",", ":"))


def parse_int64(text: str) -> int | None:
    """A base-10 int64 with sign and leading zeros allowed, else None."""
    if _is_integer(text) is None:
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None


def _count_problems(operator: str, values: tuple[str, ...], path: str) -> list[str]:
    match operator:
        case "In" | "NotIn" if not values:
            rule = "for 'in', 'notin' operators, values set can't be empty"
        case "Exists" | "DoesNotExist" if values:
            rule = "values set must be empty for exists and does not exist"
        case "Gt" | "Lt":
            return _bound_problems(values, path)
        case _:
            return []
    return [invalid(path, values, rule)]


def _bound_problems(values: tuple[str, ...], path: str) -> list[str]:
    problems = []
    if len(values) != 1:
        rule = "for 'Gt', 'Lt' operators, exactly one value is required"
        problems.append(invalid(path, values, rule))
    rule = "for 'Gt', 'Lt' operators, the value must be an integer"
    for i, value in enumerate(values):
        if parse_int64(value) is None:
            problems.append(invalid(f"{path}[{i}]", value, rule))
    return problems


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    return [f"prefix part {problem}" for problem in subdomain_problems(prefix)]


def _length_problems(text: str, longest: int) -> tuple[str, ...]:
    is_too_long = len(text.encode("utf-8", "surrogatepass")) > longest
    return (f"must be no more than {longest} bytes",) if is_too_long else ()
