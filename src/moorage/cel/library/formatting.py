"""`string.format` and `strings.quote`."""

import math
import re
from typing import Any

from moorage.cel.library.operators import double_to_string
from moorage.cel.library.times import duration_to_string, timestamp_to_string
from moorage.cel.values import (
    CelDuration,
    CelRuntimeError,
    Timestamp,
    TypeValue,
    Uint,
)

_CLAUSE = re.compile(r"%(?:(%)|(?:\.([0-9]+))?(.)|$)", re.DOTALL)
_MAX_PRECISION = 1000
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_QUOTED = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}


def quoted(text: str) -> str:
    """The text in double quotes, with escapes."""
    return f'"{"".join(_QUOTED.get(sign, sign) for sign in text)}"'


def formatted(template: str, args: list[Any]) -> str:
    """The template with its clauses (%s, %d, %.2f, ...) replaced by the arguments."""
    remaining = iter(args)

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return "%"
        for value in remaining:
            return _clause(match[3] or "", match[2], value)
        raise CelRuntimeError("format: index out of range: too few arguments")

    return _CLAUSE.sub(replace, template)


def _clause(verb: str, precision: str | None, value: Any) -> str:
    digits = 6 if precision is None else int(precision[:9])
    if digits > _MAX_PRECISION:
        raise CelRuntimeError(f"format: precision {digits} is too large")
    kind = type(value)
    match verb:
        case "s":
            return _text(value)
        case "d" if kind in (int, Uint):
            return str(int(value))
        case "f" | "e" if kind is float and not math.isfinite(value):
            return "NaN" if value != value else "∞" if value > 0 else "-∞"
        case "f" if kind is float:
            return f"{value:,.{digits}f}"  # The reference groups digits, as in American English.
        case "e" if kind is float:
            mantissa, _, exponent = f"{value:.6e}".partition("e")  # It ignores the precision.
            return (
                f"{mantissa}\N{MULTIPLICATION SIGN}10{exponent.lstrip('+').translate(_SUPERSCRIPT)}"
            )
        case "b" if kind in (int, Uint, bool):
            return f"{int(value):b}"
        case "o" | "x" | "X" if kind in (int, Uint):
            return f"{int(value):{verb}}"
        case "x" | "X" if kind in (str, bytes):
            raw = value.encode() if kind is str else value
            return str(raw.hex().upper() if verb == "X" else raw.hex())
    raise CelRuntimeError(f'format: unrecognized formatting clause "{verb}" for this argument')


def _text(value: Any) -> str:
    """A value as `%s` shows it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return double_to_string(value)
        case str():
            return value
        case bytes():
            return value.decode(errors="replace")
        case CelDuration():
            return duration_to_string(value)
        case Timestamp():
            return timestamp_to_string(value)
        case TypeValue():
            return value.name
        case list():
            return f"[{', '.join(map(_literal, value))}]"
        case dict():
            pairs = sorted((_literal(key), _literal(item)) for key, item in value.items())
            return f"{{{', '.join(f'{key}:{item}' for key, item in pairs)}}}"
    raise CelRuntimeError("format: string clause can only be used on basic types")


def _literal(value: Any) -> str:
    """A value in a list or map, as CEL's literal."""
    match value:
        case str():
            return quoted(value)
        case bytes():
            return f"b{quoted(_text(value))}"
        case float() if math.isfinite(value):
            return f"{value:.6f}"
        case CelDuration():
            return f"duration({quoted(_text(value))})"
        case Timestamp():
            return f"timestamp({quoted(_text(value))})"
    return _text(value)
