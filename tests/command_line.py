"""Runs a command in this process, with what every version of click gives."""

import contextlib
import sys
from inspect import signature

from click.testing import CliRunner

from moorage.cli.main import moorage

# Before click 8.2 standard error is part of standard output, unless one asks, and is not flushed.
OPTIONS = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


class Runner(CliRunner):
    @contextlib.contextmanager
    def isolation(self, *args, **options):
        with super().isolation(*args, **options) as streams:
            sys.stderr.reconfigure(write_through=True)
            yield streams


def run(*arguments, stdin=None):
    """`moorage ARGUMENTS...`"""
    return Runner(**OPTIONS).invoke(moorage, [str(each) for each in arguments], input=stdin)
