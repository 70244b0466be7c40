"""A configuration that a browser sends as text, for a what-if.

Plugins of other packages and files are refused: a browser must not choose which code runs.
"""

import shlex

from moorage.api import config
from moorage.api.config import SchedulerConfiguration, sources
from moorage.errors import ConfigError, InputError
from moorage.framework.registry import Registry

# The name of the parameter, and of the option of `simulate what-if`.
NAME = "new-config"
# It is part of a URL, of which an HTTP server accepts about 8,000 bytes.
MOST_BYTES = 6_000


def read(text: str) -> SchedulerConfiguration:
    """The configuration of a text; raises InputError with one line."""
    if len(text.encode()) > MOST_BYTES:
        raise InputError(f"{NAME}: is larger than {MOST_BYTES:,} bytes")
    try:
        found = config.load(sources.parse(text) or {})
    except ConfigError as error:
        raise InputError(f"{NAME}: {error.problems[0]}") from None
    except RecursionError:
        raise InputError(f"{NAME}: nested too deeply") from None
    registry = Registry()
    for profile in found.profiles:
        for name in sorted(profile.plugins.names()):
            if not registry.is_builtin(name):
                raise InputError(f'{NAME}: plugin "{name}": only built-in plugins are allowed here')
    return found


def here_document(command: list[str], text: str) -> str:
    """A command line that reads a text as the file of `--new-config`."""
    mark = "EOF"
    while mark in text.splitlines():
        mark += "_"
    body = text if text.endswith("\n") else f"{text}\n"
    return f"{shlex.join([*command, f'--{NAME}', '/dev/stdin'])} <<'{mark}'\n{body}{mark}"
