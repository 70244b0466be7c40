"""A progress bar for work that takes longer than a moment; on a terminal only."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.status import Status as RichStatus

PATIENCE_SECONDS = 1.0


class Progress:
    """Appears on standard error after a second, and leaves nothing behind.

    with Progress("scheduling") as progress:
        progress.update(done, total)
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._is_wanted = sys.stderr.isatty()
        self._started_at = time.monotonic()
        self._bar: RichProgress | None = None

    def update(self, done: int, total: int) -> None:
        """Say how far the work has come."""
        if not self._is_wanted or time.monotonic() - self._started_at < PATIENCE_SECONDS:
            return
        if self._bar is None:
            self._bar = _bar()
            self._bar.start()
            self._bar.add_task(self._what)
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


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


class Status:
    """A line that says what is going on, where nobody knows how much is left.

    with Status("trying") as status:
        status.say("with 12 nodes")
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._is_wanted = sys.stderr.isatty()
        self._started_at = time.monotonic()
        self._shown: RichStatus | None = None

    def say(self, detail: str) -> None:
        """Say what is going on now."""
        if time.monotonic() - self._started_at >= PATIENCE_SECONDS:
            self.say_at_once(detail)

    def say_at_once(self, detail: str) -> None:
        """Say it before a second has passed, because it is sure to take longer."""
        if not self._is_wanted:
            return
        if self._shown is None:
            from rich.console import Console

            self._shown = Console(stderr=True).status(self._what)
            self._shown.start()
        self._shown.update(f"{self._what} {detail}")

    def __enter__(self) -> "Status":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._shown is not None:
            self._shown.stop()
