"""Structured logs: a sentence and named values, as text for people or JSON for programs.

    log = logs.named("reflector")
    log.info("listed", kind="Pod", objects=5000)
    log.verbose(4, "bookmark", kind="Pod", version="81125")    # from -v 4 on

Text follows klog, which operators of Kubernetes can read in their sleep:

    I1115 23:24:32.041372 reflector] listed kind="Pod" objects=5000
"""

import datetime
import logging
import sys
from typing import Any, TextIO

import msgspec

ROOT = "moorage"
TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)
LOUDEST = 10

_LETTERS = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}


class Log:
    """Where one part of the scheduler says what it does."""

    def __init__(self, logger: logging.Logger, **always: Any) -> None:
        self._logger = logger
        self._always = always

    def verbose(self, level: int, text: str, **values: Any) -> None:
        """For those who asked for that much by `-v`."""
        self._say(logging.INFO - min(level, LOUDEST), text, values)

    def info(self, text: str, **values: Any) -> None:
        """What an operator wants to know in any case."""
        self._say(logging.INFO, text, values)

    def warning(self, text: str, **values: Any) -> None:
        """Trouble that is dealt with."""
        self._say(logging.WARNING, text, values)

    def error(self, text: str, **values: Any) -> None:
        """Trouble that somebody has to look at."""
        self._say(logging.ERROR, text, values)

    def bound(self, **always: Any) -> "Log":
        """The same, with values that are said every time."""
        return Log(self._logger, **{**self._always, **always})

    def _say(self, level: int, text: str, values: dict[str, Any]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", text, extra={"named": {**self._always, **values}})


def named(name: str) -> Log:
    """The log of a part."""
    return Log(logging.getLogger(f"{ROOT}.{name}"))


def configure(form: str = TEXT, verbosity: int = 0, stream: TextIO | None = None) -> None:
    """Send what all parts say to a stream, standard error if none is given."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == JSON else KlogText())
    root = logging.getLogger(ROOT)
    for before in list(root.handlers):
        root.removeHandler(before)
    root.addHandler(handler)
    root.setLevel(logging.INFO - max(0, min(verbosity, LOUDEST)))
    root.propagate = False


class KlogText(logging.Formatter):
    """A letter, the time, who speaks, the sentence, then name=value."""

    def format(self, record: logging.LogRecord) -> str:
        letter = _LETTERS.get(record.levelno, "I")
        at = _moment(record).strftime("%m%d %H:%M:%S.%f")
        said = [f"{letter}{at} {_part(record)}]", _text(record)]
        said += [f"{name}={_shown(value)}" for name, value in _values(record).items()]
        return " ".join(said)


class JsonLines(logging.Formatter):
    """One object per line, under the keys of Kubernetes' JSON logs: ts, v, caller, msg."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"ts": round(record.created * 1000, 3), "caller": _part(record)}
        if record.levelno >= logging.WARNING:
            line["level"] = record.levelname.lower()
        else:
            line["v"] = logging.INFO - record.levelno
        line["msg"] = _text(record)
        values = {
            name if name not in line else f"{name}_": v for name, v in _values(record).items()
        }
        return msgspec.json.encode(line | values, enc_hook=str).decode()


def _part(record: logging.LogRecord) -> str:
    return record.name.removeprefix(f"{ROOT}.")


def _text(record: logging.LogRecord) -> str:
    # A sentence that came from outside must not be able to start a line of its own.
    return " ".join(record.getMessage().split())


def _values(record: logging.LogRecord) -> dict[str, Any]:
    values = dict(getattr(record, "named", {}))
    if record.exc_info and record.exc_info[1] is not None:
        values["trouble"] = repr(record.exc_info[1])
    return values


def _moment(record: logging.LogRecord) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(record.created, datetime.UTC)


def _shown(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()
