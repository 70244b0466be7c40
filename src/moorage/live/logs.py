"""Structured logs: a message and named values, as text or JSON.

    log = logs.named("reflector")
    log.info("listed", kind="Pod", objects=5000)
    log.verbose(4, "bookmark", kind="Pod", version="81125")    # from -v 4 on

The text format is that of klog, which Kubernetes' components use:

    I1115 23:24:32.041372 reflector] listed kind="Pod" objects=5000
"""

import datetime
import logging
import sys
from typing import Any, TextIO

import msgspec

from moorage import terminal

ROOT = "moorage"
TEXT, JSON = "text", "json"
MAX_VERBOSITY = 10

_LETTERS = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}


class Logger:
    """The log of one component."""

    def __init__(self, logger: logging.Logger, **always: Any) -> None:
        self._logger = logger
        self._always = always

    def verbose(self, level: int, text: str, **values: Any) -> None:
        """Log only if `-v` is at least `level`."""
        self._log(logging.INFO - min(level, MAX_VERBOSITY), text, values)

    def info(self, text: str, **values: Any) -> None:
        """Log what operators always want to know."""
        self._log(logging.INFO, text, values)

    def warning(self, text: str, **values: Any) -> None:
        """Log a failure that is handled."""
        self._log(logging.WARNING, text, values)

    def error(self, text: str, **values: Any) -> None:
        """Log a failure that needs an operator."""
        self._log(logging.ERROR, text, values)

    def bound(self, **always: Any) -> "Logger":
        """A logger that adds these values to every message."""
        return Logger(self._logger, **{**self._always, **always})

    def _log(self, level: int, text: str, values: dict[str, Any]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", text, extra={"named": {**self._always, **values}})


def named(name: str) -> Logger:
    """The logger of a component."""
    return Logger(logging.getLogger(f"{ROOT}.{name}"))


def configure(form: str = TEXT, verbosity: int = 0, stream: TextIO | None = None) -> None:
    """Write all logs to a stream; standard error by default."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == JSON else KlogText())
    root = logging.getLogger(ROOT)
    for before in list(root.handlers):
        root.removeHandler(before)
    root.addHandler(handler)
    root.setLevel(logging.INFO - max(0, min(verbosity, MAX_VERBOSITY)))
    root.propagate = False


class KlogText(logging.Formatter):
    """A letter, the time, the component, the message, then name=value."""

    def format(self, record: logging.LogRecord) -> str:
        letter = _LETTERS.get(record.levelno, "I")
        moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        parts = [f"{letter}{moment:%m%d %H:%M:%S.%f} {_component(record)}]", _text(record)]
        for name, value in _values(record).items():
            parts.append(f"{name}={msgspec.json.encode(value, enc_hook=str).decode()}")
        return terminal.visible(" ".join(parts))


class JsonLines(logging.Formatter):
    """One object per line, under the keys of Kubernetes' JSON logs: ts, v, caller, msg."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"ts": round(record.created * 1000, 3), "caller": _component(record)}
        if record.levelno >= logging.WARNING:
            line["level"] = record.levelname.lower()
        else:
            line["v"] = logging.INFO - record.levelno
        line["msg"] = _text(record)
        values = {
            name if name not in line else f"{name}_": v for name, v in _values(record).items()
        }
        return terminal.visible(msgspec.json.encode(line | values, enc_hook=str).decode())


def _component(record: logging.LogRecord) -> str:
    return record.name.removeprefix(f"{ROOT}.")


def _text(record: logging.LogRecord) -> str:
    # A text from outside must not be able to start a new line.
    return " ".join(record.getMessage().split())


def _values(record: logging.LogRecord) -> dict[str, Any]:
    values = dict(getattr(record, "named", {}))
    if record.exc_info and record.exc_info[1] is not None:
        values["trouble"] = repr(record.exc_info[1])
    return values
