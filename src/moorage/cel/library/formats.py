"""Named formats: `format.dns1123Label().validate(text)` is none, or the list of what is wrong."""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial

from moorage.cel.library import network, times
from moorage.cel.types import CLASSES, define, tenths, traversal
from moorage.cel.values import NONE, OptionalValue, parses

_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_LABEL_1035 = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.I)


def _matching(pattern: re.Pattern[str], longest: int) -> Callable[[str], bool]:
    return lambda text: len(text) <= longest and pattern.fullmatch(text) is not None


def _prefix(check: Callable[[str], bool]) -> Callable[[str], bool]:
    # What a generateName may be: a dash at the end is followed by the generated part.
    return lambda text: check(f"{text[:-2]}a" if text.endswith("-") and len(text) > 1 else text)


def _qualified(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    return _matching(_NAME, 63)(name) and (not slash or _matching(_SUBDOMAIN, 253)(prefix))


def _base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


@dataclass(frozen=True, slots=True)
class FormatValue:
    """A named format."""

    name: str


_CHECKS: dict[str, Callable[[str], bool]] = {
    "dns1123Label": _matching(_LABEL, 63),
    "dns1123Subdomain": _matching(_SUBDOMAIN, 253),
    "dns1035Label": _matching(_LABEL_1035, 63),
    "dns1123LabelPrefix": _prefix(_matching(_LABEL, 63)),
    "dns1123SubdomainPrefix": _prefix(_matching(_SUBDOMAIN, 253)),
    "dns1035LabelPrefix": _prefix(_matching(_LABEL_1035, 63)),
    "qualifiedName": _qualified,
    "labelValue": lambda text: text == "" or _matching(_NAME, 63)(text),
    "uri": lambda text: parses(network.url, text),
    "uuid": _matching(_UUID, 36),
    "byte": _base64,
    "date": _date,
    "datetime": lambda text: parses(times.timestamp, text),
}
CLASSES["kubernetes.NamedFormat"] = FormatValue


def _validate(value: FormatValue, text: str) -> OptionalValue:
    if _CHECKS[value.name](text):
        return NONE
    return OptionalValue([f"{text[:80]!r} is not a valid {value.name}"])


def _named(name: str) -> OptionalValue:
    return OptionalValue(FormatValue(name)) if name in _CHECKS else NONE


for _name in _CHECKS:
    define(f"format::{_name}() -> format", run=partial(FormatValue, _name))
define("format::named(string) -> optional<format>", run=_named, cost=traversal)
define(
    "format.validate(string) -> optional<list<string>>",
    run=_validate,
    cost=lambda _, text: 1 + tenths(len(text)),
)
