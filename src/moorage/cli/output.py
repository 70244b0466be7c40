"""What people get: a console, and tables that fit it.

Colour appears on a terminal only, and not where NO_COLOR is set. Text from manifests is never
taken for markup. Where there is no terminal, lines fit 100 columns and carry no trailing blanks.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterable

from rich import box
from rich.console import Console, JustifyMethod, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

WIDTH = 100

GOOD = "bold green"
BAD = "bold yellow"
DIM = "dim"
HEAD = "bold"

# Kubernetes' words for a pod whose claims have no volume and wait for nobody.
UNBOUND = "unbound immediate PersistentVolumeClaims"


class Page:
    """Prints one thing after the other, with an empty line before each section."""

    def __init__(self) -> None:
        self.console = _console()
        self._is_fresh = True

    @property
    def width(self) -> int:
        return self.console.width

    def measure(self, what: RenderableType) -> int:
        """How many columns something would take if it had all that it wants."""
        options = self.console.options.update(width=10 * WIDTH, max_width=10 * WIDTH)
        return Measurement.get(self.console, options, what).maximum

    def section(self, head: str = "") -> None:
        """Begin something new."""
        if not self._is_fresh:
            self.put("")
        if head:
            self.put(Text(head, style=HEAD))

    def put(self, what: RenderableType) -> None:
        """Print a text or a table."""
        self._is_fresh = False
        if self.console.is_terminal:
            self.console.print(what)
            return
        with self.console.capture() as captured:
            self.console.print(what)
        lines = [line.rstrip() for line in captured.get().removesuffix("\n").split("\n")]
        self.console.file.write("\n".join(lines) + "\n")

    def note(self, text: str) -> None:
        """Print something of less weight."""
        self.put(Text(text, style=DIM))


def _console() -> Console:
    return Console(width=_width(), markup=False, highlight=False, emoji=False)


def _width() -> int | None:
    told = os.environ.get("COLUMNS", "")
    if told.isdigit() and int(told) > 0:
        return int(told)
    return None if sys.stdout.isatty() else WIDTH


def table() -> Table:
    """A table with a line under its heads and no other ornaments."""
    return Table(
        box=box.SIMPLE_HEAD,
        header_style=HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )


def items(*, justify: JustifyMethod = "right") -> Table:
    """A list: something short on the left, what it is about on the right."""
    found = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    found.add_column(justify=justify)
    found.add_column(overflow="fold")
    return found


def stacked(name: str, width: int = 13) -> str:
    """A long CamelCase name in lines, so that the column below it can be narrow."""
    lines = [""]
    for word in _camel_words(name):
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word
    return "\n".join(lines)


def _camel_words(name: str) -> list[str]:
    found = [""]
    for letter in name:
        if letter.isupper() and found[-1] and not found[-1][-1].isupper():
            found.append("")
        found[-1] += letter
    return found


def skipped(page: Page, counts: Counter[str]) -> None:
    """Mention what was read and left aside, if anything was."""
    if counts:
        total = sum(counts.values())
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        of_kinds = "1 object of a kind" if total == 1 else f"{total:,} objects of kinds"
        page.section()
        page.note(f"{of_kinds} that scheduling does not read: {kinds}")


def claims_hint(page: Page, reasons: Iterable[str]) -> None:
    """Say where volumes come from, if somebody waits for one: manifests often leave classes out."""
    if any(UNBOUND in reason for reason in reasons):
        page.note(
            "A claim gets its volume from a StorageClass or PersistentVolume among the objects "
            "given; add the missing one with -f. `moorage explain POD` names the claim."
        )
