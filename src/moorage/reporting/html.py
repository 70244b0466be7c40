"""HTML elements; text from manifests is always escaped."""

from collections.abc import Iterable, Sequence
from html import escape

Rows = Iterable[Sequence[object]]


def tag(name: str, *inner: str, **attributes: object) -> str:
    """An element; `class_` is class, and underscores in other names are hyphens."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{given}>{''.join(inner)}</{name}>"


def text(value: object) -> str:
    """A value as text."""
    return escape(str(value))


def table(heads: Sequence[str], rows: Rows, *, numbers: Iterable[int] = ()) -> str:
    """A table; columns of numbers are aligned right. Cells are text, never markup."""
    right = set(numbers)

    def cell(kind: str, index: int, value: object) -> str:
        scope = {"scope": "col"} if kind == "th" else {}
        style = {"class_": "number"} if index in right else {}
        return tag(kind, text(value), **scope, **style)

    head = tag("tr", *(cell("th", i, each) for i, each in enumerate(heads)))
    body = (tag("tr", *(cell("td", i, each) for i, each in enumerate(row))) for row in rows)
    inner = tag("thead", head) + tag("tbody", *body)
    label = f"Table of {', '.join(each for each in heads if each)}"
    scroll = {"class_": "scroll", "tabindex": "0", "role": "region", "aria_label": label}
    return tag("div", tag("table", inner), **scroll)
