"""The exception hierarchy.

    MoorageError
    ├── InputError        bad input: one line with location, rule and value; exit code 2
    │   ├── ManifestError     an object that cannot be decoded or is invalid
    │   │   └── AdmissionError    an object that a limit range or a class refuses
    │   ├── ConfigError       an invalid KubeSchedulerConfiguration
    │   └── KubeconfigError   an unusable kubeconfig or unusable in-cluster credentials
    ├── PluginError       a plugin raised or violated its contract; names the plugin
    ├── PluginFailure     raised by a plugin on purpose: its text is shown as it is
    └── InvariantError    a bug of ours: an invariant does not hold

An external failure (a refused binding, a lost connection) is an `Outcome`, not an exception.
"""

import inspect
import os
from typing import Any

# The length to which a value is cut in a message.
MOST_SHOWN = 200


class MoorageError(Exception):
    """The base of all exceptions that Moorage raises."""


class InputError(MoorageError):
    """Unusable input; the text is one line for the user."""


class ManifestError(InputError):
    """An object that cannot be used: names file, document, kind/name and field.

    `problems` has a line for each error of all files.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = list(problems)

    def __str__(self) -> str:
        more = len(self.problems) - 1
        return self.problems[0] + (f" (and {more:,} more)" if more else "")


class AdmissionError(ManifestError):
    """An object that an API server refuses because of other objects; `why` is its reason."""

    def __init__(self, subject: str, why: str) -> None:
        super().__init__(f"{subject}: {why}")
        self.why = why


class ConfigError(InputError):
    """An invalid configuration; `problems` has one line per error."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        several = f"[{', '.join(self.problems)}]"
        return self.problems[0] if len(self.problems) == 1 else several


class KubeconfigError(InputError):
    """An unusable kubeconfig or unusable in-cluster credentials: names file and field."""


class PluginError(MoorageError):
    """A plugin raised an exception or violated its contract.

    `reason` is what the plugin said; `str()` also names the plugin and the extension point in
    Kubernetes' wording. The exception of the plugin, if any, is the `__cause__`.
    """

    def __init__(self, plugin: str, reason: str, text: str = "") -> None:
        super().__init__(plugin, reason, text)
        self.plugin = plugin
        self.reason = reason
        self.text = text or reason

    def __str__(self) -> str:
        return self.text


class PluginFailure(MoorageError):
    """Raised by a plugin on purpose; the text is complete, so file and line are not added."""


class InvariantError(MoorageError):
    """An invariant does not hold."""


def describe(raised: BaseException) -> str:
    """An exception in one line, as its author worded it."""
    try:
        text = _text(raised)
    except Exception:  # Its own `__str__` raises.
        text = type(raised).__name__
    # Spaces within a line stay: some of Kubernetes' texts have two in a row.
    return as_utf8(" ".join(filter(None, map(str.strip, text.splitlines()))))


def _text(raised: BaseException) -> str:
    if isinstance(raised, SystemExit):
        return f"called sys.exit({'' if raised.code is None else repr(raised.code)})"
    text = str(raised) or type(raised).__name__
    if isinstance(raised, KeyError) and raised.args:
        # A bare key says nothing by itself; some authors write a sentence instead.
        text = str(raised.args[0]) if " " in str(raised.args[0]) else f"KeyError: {text}"
    return text


def shown(value: object) -> str:
    """A value of a plugin, in a message of one line."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # Its own `__repr__` raises.
        text = f"an instance of {type(value).__name__}"
    return as_utf8(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}...")


def as_utf8(text: str) -> str:
    """Text that can be sent: a lone surrogate, as in a file's name, is written as an escape."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def location(raised: BaseException) -> str:
    """Where in the plugin's own code an exception was raised, as ` (file.py:12)`.

    Own code is every file in the folder of the method that was called. Empty if no Python code of
    the plugin was reached.
    """
    step = None if raised.__traceback__ is None else raised.__traceback__.tb_next
    if step is None:
        return ""
    folder = os.path.dirname(step.tb_frame.f_code.co_filename)  # noqa: PTH120  # may be <stdin>
    found = ""
    while step is not None:
        path, file = os.path.split(step.tb_frame.f_code.co_filename)
        if path == folder:
            found = f" ({file}:{step.tb_lineno})"
        step = step.tb_next
    return found


def definition(function: Any) -> str:
    """Where a function of a plugin is defined, as ` (file.py:12)`; empty if it is not Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else f" ({os.path.split(code.co_filename)[1]}:{code.co_firstlineno})"
