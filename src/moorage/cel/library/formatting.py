"""`string.format` and `strings.quote`."""

import math
import re
from typing import Any

from moorage.cel.values import (
    CelRuntimeError,
    Duration,
    OptionalValue,
    Timestamp,
    TypeValue,
    Uint,
)

_CLAUSE = re.compile(r"%(?:(%)|(?:\.([0-9]+))?(.)|$)", re.DOTALL)
_MAX_PRECISION = 1000
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
            return text_of(value)
        case "d" if kind in (int, Uint, float) and math.isfinite(value):
            return str(int(value)) if kind is not float or value == int(value) else text_of(value)
        case "f" | "e" if kind in (int, Uint, float):
            if not math.isfinite(value):
                return text_of(value)
            return f"{value:.{digits}{verb}}"
        case "b" if kind in (int, Uint, bool):
            return f"{int(value):b}"
        case "o" if kind in (int, Uint):
            return f"{value:o}"
        case "x" | "X" if kind in (int, Uint):
            return f"{value:{verb}}"
        case "x" | "X" if kind in (str, bytes):
            raw = value.encode(errors="surrogatepass") if kind is str else value
            return str(raw.hex().upper() if verb == "X" else raw.hex())
    raise CelRuntimeError(f'format: unrecognized formatting clause "{verb}" for this argument')


def text_of(value: Any) -> str:
    """A value as `%s` shows it."""
    from moorage.cel.library.operators import double_to_string
    from moorage.cel.library.times import duration_to_string, timestamp_to_string

    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return double_to_string(value).replace("+Inf", "Infinity").replace("-Inf", "-Infinity")
        case str():
            return value
        case bytes():
            return value.decode(errors="replace")
        case Duration():
            return duration_to_string(value)
        case Timestamp():
            return timestamp_to_string(value)
        case TypeValue():
            return value.name
        case list():
            return f"[{', '.join(map(text_of, value))}]"
        case dict():
            pairs = sorted((text_of(key), text_of(item)) for key, item in value.items())
            return f"{{{', '.join(f'{key}: {item}' for key, item in pairs)}}}"
        case OptionalValue():
            raise CelRuntimeError("format: optional values cannot be formatted")
    raise CelRuntimeError("format: string clause can only be used on basic types")
