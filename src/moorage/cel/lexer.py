"""Tokens of CEL: text to a list of `Token`, with literals already decoded."""

import re
from dataclasses import dataclass
from typing import Any

from moorage.cel.values import INT_MAX, UINT_MAX, CelCompileError, Uint

_TOKEN = re.compile(
    r"""(?P<space>(?:[ \t\r\n\f]|//[^\n]*)+)
      | (?P<double>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
      | (?P<int>(?:0x[0-9a-fA-F]+|[0-9]+)[uU]?)
      | (?P<string>[rR]?[bB]?(?:\"\"\"|'''|"|')|[bB][rR](?:\"\"\"|'''|"|'))
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>\[\?|\.\?|==|!=|<=|>=|&&|\|\||[][(){}.,:?!<>+\-*/%])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(
    r"\\(?:(?P<plain>[abfnrtv\\?\"'`])|(?P<octal>[0-3][0-7]{2})"
    r"|[xX](?P<hex>[0-9a-fA-F]{2})|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<bad>))"
)
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token: `kind` is "name", "sign", "literal" or "end"."""

    kind: str
    text: str
    position: int
    value: Any = None


class CelSyntaxError(CelCompileError):
    """A compile error at a position of the expression."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(f"compilation failed: ERROR: <input>:1:{position + 1}: {what}")
        self.position = position
        self.what = what

    def located(self, text: str) -> str:
        """The error with its line and column, and the line itself with a mark below it."""
        before = text[: self.position]
        row, column = before.count("\n"), self.position - (before.rfind("\n") + 1)
        line = text.split("\n")[row]
        return f"ERROR: <input>:{row + 1}:{column + 1}: {self.what}\n | {line}\n | {'.' * column}^"


def syntax_error(position: int, what: str) -> CelSyntaxError:
    """A compile error with the column that it is at."""
    return CelSyntaxError(position, what)


def tokens(text: str) -> list[Token]:
    """The tokens of an expression, with an "end" token at the end."""
    result = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            unread = text[position : position + 2]
            what = f"Syntax error: token recognition error at: '{unread}'"
            raise syntax_error(position, what)
        kind, start, position = str(match.lastgroup), position, match.end()
        if kind == "string":
            value, position = _string(text, match[0], position)
            result.append(Token("literal", text[start:position], start, value))
        elif kind in ("int", "double"):
            result.append(Token("literal", match[0], start, _number(match[0], kind, start)))
        elif kind != "space":
            result.append(Token(kind, match[0], start))
    result.append(Token("end", "<EOF>", len(text)))
    return result


def _number(text: str, kind: str, position: int) -> int | float:
    if kind == "double":
        return float(text)
    digits = text.rstrip("uU")
    base = 16 if digits.startswith("0x") else 10
    # 2**63 is allowed here: the parser accepts it after a minus sign.
    limit = UINT_MAX if digits != text else INT_MAX + 1
    if len(digits) > 100 or int(digits, base) > limit:
        raise syntax_error(position, f"invalid {'uint' if digits != text else 'int'} literal")
    return Uint(digits, base) if digits != text else int(digits, base)


def _string(text: str, opening: str, start: int) -> tuple[str | bytes, int]:
    prefix, quote = opening.rstrip("\"'").lower(), opening.lstrip("rRbB")
    end = start
    while not text.startswith(quote, end):
        if end >= len(text) or (len(quote) == 1 and text[end] in "\r\n"):
            raise syntax_error(start, "Syntax error: unterminated string")
        end += 2 if text[end] == "\\" and "r" not in prefix else 1
    body = text[start:end]
    as_bytes = "b" in prefix
    try:
        if "r" not in prefix and "\\" in body:
            if as_bytes:
                decoded = b"".join(_bytes_parts(body))
                return decoded, end + len(quote)
            body = _ESCAPE.sub(_unescape, body)
            body.encode()  # An escape must not make half a surrogate pair.
        return (body.encode() if as_bytes else body), end + len(quote)
    except ValueError:
        raise syntax_error(start, "Syntax error: invalid escape sequence") from None


def _unescape(match: re.Match[str]) -> str:
    if match["plain"]:
        return _PLAIN.get(match["plain"], match["plain"])
    if match["octal"]:
        return chr(int(match["octal"], 8))
    digits = match["hex"] or match["short"] or match["long"]
    if not digits:
        raise ValueError("bad escape")
    return chr(int(digits, 16))


def _bytes_parts(body: str) -> list[bytes]:
    # In bytes, \x and octal escapes are bytes, and \u is not allowed.
    parts, end = [], 0
    for match in _ESCAPE.finditer(body):
        if match["short"] or match["long"]:
            raise ValueError("bad escape")
        parts += [body[end : match.start()].encode(), _unescape(match).encode("latin-1")]
        end = match.end()
    return [*parts, body[end:].encode()]
