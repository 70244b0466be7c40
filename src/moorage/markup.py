"""HTML fragments for notebooks: paragraphs, tables and lists, with all text escaped.

Plain tags, so that the notebook's own light or dark style applies.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NewType

Html = NewType("Html", str)

LEFT = ' style="text-align: left"'
RIGHT = ' style="text-align: right"'


def join(parts: Iterable[Html]) -> str:
    """Wrap parts in one block."""
    return f"<div>{''.join(parts)}</div>"


def paragraph(text: str, *, strong: bool = False) -> Html:
    """A line of text."""
    escaped = escape(text)
    return Html(f"<p><b>{escaped}</b></p>" if strong else f"<p>{escaped}</p>")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Html:
    """A table; numbers are right-aligned."""
    heads = "".join(f"<th{LEFT}>{escape(name)}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return Html(f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>")


def items(lines: Iterable[str]) -> Html:
    """A list."""
    return Html(f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>")


def _cell(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"<td{LEFT}>{escape(str(value))}</td>"
    return f"<td{RIGHT}>{value:,}</td>"
