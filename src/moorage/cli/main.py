"""The entry point: finds the command, runs it, and turns bad input into one line and exit code 2.

Nothing is imported before it is needed: `moorage --help` has to answer at once, and NumPy alone
would double its time. So a command's file imports click and its neighbours on top, and all else in
its functions.
"""

import errno
import gc
import os
import sys
from typing import Any, ClassVar

import click

from moorage import terminal
from moorage.cli import options, plugin_output
from moorage.errors import ConfigError, InputError, ManifestError
from moorage.version import __version__

COMMANDS = ("explain", "simulate", "run", "snapshot", "record", "serve", "ui", "bench", "config")

EXIT_BAD_INPUT = 2
MOST_LINES = 40
INTERRUPTED = 130  # as in shells: 128 and the number of the signal, SIGINT
BROKEN_PIPE = 141  # the same for SIGPIPE
# Standard output cannot be written: its disk is full, or it was closed (`>&-`).
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class BadInput(click.ClickException):
    """Bad input, a line per problem."""

    exit_code = EXIT_BAD_INPUT

    def __init__(self, error: InputError) -> None:
        self.lines = [str(error)]
        if isinstance(error, ConfigError | ManifestError):
            self.lines = error.problems
        super().__init__("; ".join(self.lines))

    def show(self, file: Any = None) -> None:
        shown, more = self.lines[:MOST_LINES], len(self.lines) - MOST_LINES
        for line in [*shown, *([f"and {more:,} more problems"] if more > 0 else [])]:
            text = terminal.visible(" ".join(line.split()))
            click.echo(f"moorage: {text}", file=file, err=file is None)


class Commands(options.LazyGroup):
    """The commands, each in the file of its name."""

    modules: ClassVar = {name: name for name in COMMANDS}

    def invoke(self, ctx: click.Context) -> Any:
        plugin_output.observe()
        try:
            return super().invoke(ctx)
        except InputError as error:
            raise BadInput(error) from None
        except SystemExit as left:  # Commands do not call sys.exit: a plugin did.
            raise BadInput(InputError(_exit_location(left))) from None
        except BrokenPipeError:
            # Click would exit with code 1, which means "no" here.
            _stop_writing()
            raise click.exceptions.Exit(BROKEN_PIPE) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="moorage %(version)s")
def moorage() -> None:
    """A Kubernetes scheduler in Python: it makes the decisions of kube-scheduler, evaluates every
    node, explains each decision, and runs with or without a cluster.

    \b
    Exit codes: 0  done
                1  the answer is "no" (simulate --fail-on-pending and others),
                   or the lease was lost (run)
                2  invalid input; standard error has one line per problem
    """


def main() -> None:
    """Run a command; end quietly when interrupted, or when the output is closed."""
    if sys.stdout is None:
        # Take the descriptor, so that no other file gets it; writing to it fails.
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:  # Warnings and progress are lost then (`2>&-`), the output is not.
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    try:
        code = moorage(standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):  # The first is click's word for Ctrl-C.
        code = INTERRUPTED
    except OSError as error:
        # File errors are handled where files are opened; this is standard output.
        if error.errno not in UNWRITABLE:
            raise
        click.echo(f"moorage: standard output: {error.strerror}", err=True)
        _stop_writing()
        code = EXIT_BAD_INPUT
    # Python collects garbage once more at exit, and would free a large simulation object by object.
    gc.freeze()
    sys.exit(code)


def _exit_location(left: SystemExit) -> str:
    """Where `sys.exit` was called, and what to do about it."""
    trace = left.__traceback__
    assert trace is not None  # It was raised.
    while trace.tb_next is not None:
        trace = trace.tb_next
    where = f"{trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}"
    return f"{where}: sys.exit was called; a plugin has to raise an exception instead"


def _stop_writing() -> None:
    # Python flushes once more at exit, which would fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
