"""What plugins do to the output: tracebacks and warnings once each, and where `print` goes."""

import contextlib
import sys
import traceback
from collections.abc import Callable

import click

from moorage import plugin_reports

# Of one command; more of them say nothing new.
MOST = 10

Show = Callable[[str], object]


def observe(show: Show | None = None) -> None:
    """Show every traceback and warning of a plugin once: on standard error, or with `show`."""
    seen: set[tuple[str, ...]] = set()
    show = show or (lambda text: click.echo(f"moorage: {text}", err=True))

    def once(key: tuple[str, ...], text: Callable[[], str]) -> None:
        if key not in seen and len(seen) < MOST:
            seen.add(key)
            show(text())

    def raised(plugin: str, error: BaseException) -> None:
        trace = error.__traceback__
        below = trace and trace.tb_next  # Without the frame of the framework.
        last = traceback.extract_tb(trace)[-1]
        key = (plugin, type(error).__name__, last.filename, str(last.lineno))
        once(
            key,
            lambda: (
                f"plugin {plugin} raised an exception:\n"
                + "".join(traceback.format_exception(type(error), error, below)).rstrip()
            ),
        )

    def warned(plugin: str, text: str) -> None:
        once((plugin, text), lambda: f"warning: plugin {plugin}: {text}")

    plugin_reports.on_exception[:] = [raised]
    plugin_reports.on_warning[:] = [warned]


def redirected() -> contextlib.AbstractContextManager[object]:
    """While plugins run, what they print goes to standard error: `-o json` stays one document."""
    return contextlib.redirect_stdout(sys.stderr)
