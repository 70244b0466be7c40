"""Output for people: a console, and tables that fit it.

Colour appears on a terminal that can draw, and not where NO_COLOR is set. Text from manifests is
never interpreted as markup, and control characters in it are shown, not sent. Without a terminal,
lines fit 100 columns and have no trailing blanks.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import (
    Console,
    ConsoleOptions,
    ConsoleRenderable,
    JustifyMethod,
    RenderableType,
    RenderHook,
)
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from moorage import terminal
from moorage.api import texts

if TYPE_CHECKING:
    from moorage.expansion.refusals import Refusal

WIDTH = 100

GOOD = "bold green"
BAD = "bold yellow"
DIM = "dim"
HEAD = "bold"

# Part of Kubernetes' message for a pod with unbound claims of binding mode Immediate.
UNBOUND = "unbound immediate PersistentVolumeClaims"


class _Console(Console):
    """A console that leaves a closed pipe to the entry point, instead of exiting with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class _VisibleHook(RenderHook):
    """Makes control characters in all texts visible; rich adds its own for colours later."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Visible(each) for each in renderables]


class _Visible:
    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._inner, options):
            if segment.control:
                yield segment
            else:
                yield Segment(terminal.visible(segment.text), segment.style)


class ConsolePage:
    """Prints texts and tables in order, with an empty line before each section."""

    def __init__(self) -> None:
        is_plain = sys.stdout.isatty() and not terminal.can_draw(sys.stdout)
        self.console = _Console(
            width=_width(),
            force_terminal=False if is_plain else None,  # None: rich decides.
            markup=False,
            highlight=False,
            emoji=False,
        )
        self.console.push_render_hook(_VisibleHook())
        self._is_fresh = True
        self._has_hint = False

    @property
    def width(self) -> int:
        return self.console.width

    def measure(self, what: RenderableType) -> int:
        """The width of a text or table that is not limited by the console."""
        options = self.console.options.update(width=10 * WIDTH, max_width=10 * WIDTH)
        return Measurement.get(self.console, options, what).maximum

    def section(self, head: str = "") -> None:
        """Begin a section."""
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
        """Print a dim line."""
        self.put(Text(text, style=DIM))

    def pairs(self, rows: Iterable[tuple[str, str]], most: int | None = None) -> None:
        """Print a name and a dim remark per line, up to `most` lines."""
        rows = list(rows)
        table = items(justify="left")
        for name, remark in rows[:most]:
            table.add_row(name, Text(remark, DIM))
        self.put(table)
        if most is not None and len(rows) > most:
            self.note(f"and {len(rows) - most:,} more; -a shows all")

    def reasons(
        self,
        groups: Iterable[tuple[str, Sequence[str]]],
        most: int | None = None,
        *,
        show_all: bool = False,
    ) -> None:
        """Print pods by reason, up to `most` reasons, and a hint if a claim has no volume."""
        table = items()
        groups = list(groups)
        for reason, pods in groups[:most]:
            names = ", ".join(pods) if show_all else texts.listed(pods, self.width - 8)
            table.add_row(f"{len(pods):,}", Text.assemble((names, BAD), "\n", reason))
        if most is not None and len(groups) > most:
            table.add_row("", f"and {texts.count(len(groups) - most, 'more reason')}")
        self.put(table)
        self.claims_hint(reason for reason, _ in groups)

    def refused(self, found: "Iterable[Refusal]") -> None:
        """Print workloads and other objects with what quotas and limit ranges say about them."""
        table = items()
        for each in found:
            # The name of a pod that does not exist says nothing.
            prefix, _, why = each.reason.partition(" is forbidden: ")
            text = why if prefix.startswith("pods ") else each.reason
            count = f"{each.pods:,}" if each.pods else ""
            table.add_row(count, Text.assemble((each.key, BAD), "\n", text))
        self.put(table)

    def claims_hint(self, reasons: Iterable[str]) -> None:
        """Say once where volumes come from, if a claim has none: manifests often lack the class."""
        if not self._has_hint and any(UNBOUND in reason for reason in reasons):
            self._has_hint = True
            self.note(
                "A claim gets its volume from a StorageClass or PersistentVolume among the objects "
                "given; add the missing one with -f. `moorage explain POD` names the claim."
            )

    def skipped(self, counts: Counter[str]) -> None:
        """Mention the objects that scheduling does not read, if there are any."""
        if counts:
            total = sum(counts.values())
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
            of_kinds = "1 object of a kind" if total == 1 else f"{total:,} objects of kinds"
            self.section()
            self.note(f"{of_kinds} that scheduling does not read: {kinds}")


def _width() -> int | None:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return int(columns)
    return None if sys.stdout.isatty() else WIDTH


def table(*heads: str, numbers: Iterable[str] = ()) -> Table:
    """A table with a line under its heads; columns of numbers are on the right."""
    found = Table(
        box=box.SIMPLE_HEAD,
        header_style=HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for head in heads:
        found.add_column(head, overflow="fold")
    for head in numbers:
        found.add_column(head, justify="right", no_wrap=True)
    return found


def items(*, justify: JustifyMethod = "right") -> Table:
    """A list: a short text on the left, its explanation on the right."""
    found = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    found.add_column(justify=justify)
    found.add_column(overflow="fold")
    return found


def stacked(name: str, width: int = 13) -> str:
    """A long CamelCase name in lines, so that the column below it can be narrow."""
    lines = [""]
    for word in re.split("(?<=[^A-Z])(?=[A-Z])", name):
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word
    return "\n".join(lines)
