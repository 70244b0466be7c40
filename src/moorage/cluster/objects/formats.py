"""Formats of strings in the schemas of custom resources (`format: date-time`).

Unknown formats are ignored, as by an API server. So are isbn, creditcard, ssn, bsonobjectid and
colours, which an API server checks.
"""

import ipaddress
import re
from collections.abc import Callable
from typing import Any

from moorage.cel.schemas import PARSERS
from moorage.cel.values import CelRuntimeError

_HEX = "[0-9a-fA-F]"
_UUID = f"{_HEX}{{8}}-?{_HEX}{{4}}-?%s-?%s-?{_HEX}{{12}}"
_ANY, _VARIANT = f"{_HEX}{{4}}", f"[89abAB]{_HEX}{{3}}"
_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def _accepts(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, CelRuntimeError):
            return False
        return True

    return check


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


_FORMATS: dict[str, Callable[[str], bool]] = {
    **{name: _accepts(parse) for name, parse in PARSERS.items()},
    "ipv4": _accepts(ipaddress.IPv4Address),
    "ipv6": _accepts(ipaddress.IPv6Address),
    "cidr": lambda text: "/" in text and _accepts(ipaddress.ip_interface)(text),
    "mac": _matches(rf"{_HEX}{{2}}([:-]{_HEX}{{2}}){{5,7}}|({_HEX}{{4}}\.){{2,3}}{_HEX}{{4}}"),
    "uuid": _matches(_UUID % (_ANY, _ANY)),
    "uuid3": _matches(_UUID % (f"3{_HEX}{{3}}", _ANY)),
    "uuid4": _matches(_UUID % (f"4{_HEX}{{3}}", _VARIANT)),
    "uuid5": _matches(_UUID % (f"5{_HEX}{{3}}", _VARIANT)),
    "hostname": _matches(r"(?=.{1,255}$)[^\W_]([\w-]{0,61}[^\W_])?(\.[^\W_]([\w-]{0,61}[^\W_])?)*"),
    "uri": _matches(r"/.*|[a-zA-Z][a-zA-Z0-9+.-]*:[^\x00-\x20]+"),
    "email": _matches(r"(.*<)?[^\s@<>]+@[^\s@<>]+>?"),
    "k8s-short-name": _matches(f"(?=.{{1,63}}$){_NAME}"),
    "k8s-long-name": _matches(rf"(?=.{{1,253}}$){_NAME}(\.{_NAME})*"),
}


def has_format(text: str, name: Any) -> bool:
    """Whether a string has a format."""
    check = _FORMATS.get(name) if isinstance(name, str) else None
    return check is None or check(text)
