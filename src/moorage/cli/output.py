"""What commands print with: documents for programs, a console for people.

Colour appears on a terminal only, and not where NO_COLOR is set. Text from manifests is never
taken for markup, and what is cut to fit a terminal fits 100 columns where there is none.
"""

import os
import sys
from collections import Counter
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH = 100

GOOD = "bold green"
BAD = "bold yellow"
DIM = "dim"
HEAD = "bold"


def console(*, stderr: bool = False) -> Console:
    """Where tables go."""
    stream = sys.stderr if stderr else sys.stdout
    told = os.environ.get("COLUMNS", "")
    width = int(told) if told.isdigit() and int(told) else None
    if width is None and not stream.isatty():
        width = WIDTH
    return Console(
        file=stream, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False
    )


def document(plain: dict[str, Any], output: str) -> None:
    """One document for programs."""
    click.echo(as_yaml(plain) if output == "yaml" else as_json(plain), nl=False)


def as_json(plain: dict[str, Any]) -> str:
    """Plain data as JSON, in its own order."""
    import json

    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"


def as_yaml(plain: dict[str, Any]) -> str:
    """Plain data as YAML, in its own order."""
    import yaml

    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=WIDTH)
    return text


def table(*, heads: bool = True) -> Table:
    """A table with a line under its heads and no other ornaments."""
    return Table(
        box=box.SIMPLE_HEAD if heads else None,
        show_header=heads,
        header_style=HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 1) if heads else (0, 2, 0, 0),
    )


def stacked(name: str, width: int = 13) -> str:
    """A long CamelCase name in lines, so that the column below it can be narrow."""
    lines = [""]
    for word in _words(name):
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word
    return "\n".join(lines)


def _words(name: str) -> list[str]:
    found = [""]
    for letter in name:
        if letter.isupper() and found[-1] and not found[-1][-1].isupper():
            found.append("")
        found[-1] += letter
    return found


def skipped(counts: Counter[str]) -> Text | None:
    """A line on what was read and left aside, if anything was."""
    if not counts:
        return None
    total = sum(counts.values())
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    of_kinds = "1 object of a kind" if total == 1 else f"{total} objects of kinds"
    return Text(f"{of_kinds} that scheduling does not read: {kinds}", style=DIM)
