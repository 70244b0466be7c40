"""A progress bar for work that takes longer than a moment, on a terminal that can draw it."""

import sys
import time
from typing import TYPE_CHECKING, Self

from moorage import terminal
from moorage.cli import plugin_output

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.status import Status as RichStatus

DELAY_SECONDS = 1.0


class _Display:
    """Something on standard error that leaves nothing behind; nothing if that cannot draw.

    Meanwhile plugins may run: what they print goes to standard error, too.
    """

    _shown: "RichProgress | RichStatus | None" = None

    def __init__(self, what: str) -> None:
        self._what = what
        self._can_draw = terminal.can_draw(sys.stderr)
        self._started_at = time.monotonic()

    @property
    def _is_due(self) -> bool:
        return time.monotonic() - self._started_at >= DELAY_SECONDS

    def __enter__(self) -> Self:
        self._redirected = plugin_output.redirected()
        self._redirected.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._redirected.__exit__(None, None, None)
        if self._shown is not None:
            self._shown.stop()


class ProgressBar(_Display):
    """A bar that appears after a second.

    with ProgressBar("scheduling") as progress:
        progress.update(done, total)
    """

    _shown: "RichProgress | None" = None

    def update(self, done: int, total: int) -> None:
        """Say how far the work has come."""
        if not self._can_draw or not self._is_due:
            return
        if self._shown is None:
            self._shown = _bar()
            self._shown.start()
            self._shown.add_task(self._what)
        self._shown.update(self._shown.task_ids[0], completed=done, total=total)


def _bar() -> "RichProgress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    return Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


class StatusLine(_Display):
    """A line that says what is going on, where the amount of work is not known.

    with StatusLine("trying") as status:
        status.say("with 12 nodes")
    """

    _shown: "RichStatus | None" = None

    def say(self, detail: str) -> None:
        """Say what is going on now, after the first second."""
        if self._is_due:
            self.say_at_once(detail)

    def say_at_once(self, detail: str) -> None:
        """Say it without the delay, because the work is known to take long."""
        if not self._can_draw:
            return
        if self._shown is None:
            from rich.console import Console

            self._shown = Console(stderr=True).status(self._what)
            self._shown.start()
        self._shown.update(f"{self._what} {detail}")
