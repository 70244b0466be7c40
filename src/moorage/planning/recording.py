"""Recording: a run as a file: the configuration first, then every call of the scheduler.

    {"recording":1,"config":{...},"baseDir":"."}
    {"at":0.0,"call":"start","replica":0,"seed":7}
    {"at":0.0,"call":"observe","replica":0,"news":"Listed","kind":"Node","objects":[...]}

Lines of JSON, so that `grep` and `jq` can read them; a name that ends in .gz is compressed.

A recording of a live cluster (`moorage record`) has "live":true in its first line. It has the
observations only: which scheduler decided, and with which configuration, is not known.
"""

import contextlib
import gzip
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from moorage.api import config as configuration
from moorage.api.config import SchedulerConfiguration
from moorage.api.kinds import KINDS
from moorage.errors import InputError
from moorage.sim.run import Simulation
from moorage.sim.trace import Line

VERSION = 1
CALLS = ("start", "observe", "schedule_one", "complete", "advance")


class Header(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """The first line."""

    recording: int
    config: dict[str, Any]
    base_dir: str = ""
    live: bool = False
    started_at: str = ""  # Time of day, for people.


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded run: the configuration, and every call in order."""

    config: SchedulerConfiguration
    texts: tuple[str, ...]
    lines: tuple[Line, ...]
    is_live: bool = False

    @property
    def seed(self) -> int:
        return next((line.seed for line in self.lines if line.seed is not None), 0)


def write(path: str | os.PathLike[str], simulation: Simulation) -> None:
    """Write a simulation that was made with `trace=True`; the file is complete or missing."""
    assert simulation.trace is not None, "only a simulation with a trace can be recorded"
    config = simulation.config
    plain = configuration.to_dict(config)
    header = Header(VERSION, plain, str(config.base_dir.absolute()))
    texts = (msgspec.json.encode(header).decode(), *simulation.trace.lines())
    path = Path(path)
    data = "\n".join((*texts, "")).encode()
    # Without a timestamp, so that the same run gives the same file.
    data = gzip.compress(data, mtime=0) if path.suffix == ".gz" else data
    try:
        if path.exists() and not path.is_file():  # A pipe or a device cannot be replaced.
            path.write_bytes(data)
        else:
            replace_file(path.resolve(), data)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


class RecordingFile:
    """A recording of a live cluster that is written line by line."""

    def __init__(self, path: str | os.PathLike[str], started_at: str) -> None:
        self._path = Path(path)
        plain = configuration.to_dict(configuration.load(None))
        header = Header(VERSION, plain, live=True, started_at=started_at)
        try:
            is_compressed = self._path.suffix == ".gz"
            opened = gzip.open if is_compressed else open
            self._out = opened(path, "wb")
        except OSError as error:
            raise self._unusable(error) from None
        self._put(msgspec.json.encode(header))

    def write(self, line: Line) -> None:
        """Append a line."""
        self._put(msgspec.json.encode(line))

    def _put(self, text: bytes) -> None:
        try:
            self._out.write(text + b"\n")
        except OSError as error:
            raise self._unusable(error) from None

    def flush(self) -> None:
        """Make the lines so far readable by others."""
        try:
            self._out.flush()
        except OSError as error:
            raise self._unusable(error) from None

    def close(self) -> None:
        """Complete the file."""
        try:
            self._out.close()
        except OSError as error:
            raise self._unusable(error) from None

    def _unusable(self, error: OSError) -> InputError:
        return InputError(f"{self._path}: {(error.strerror or str(error)).lower()}")


def replace_file(path: Path, data: bytes) -> None:
    """Write under another name and rename, so that the file is complete or missing."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def is_recording(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a recording does."""
    path = Path(path)
    start = b'{"recording":'
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return file.read(len(start)) == start
    except (OSError, EOFError):
        return False


def read(path: str | os.PathLike[str]) -> Recording:
    """A recording from a file; errors name the line."""
    path = Path(path)
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        texts = data.decode().splitlines()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return parse(texts, str(path))


def parse(texts: Iterable[str], source: str = "recording") -> Recording:
    """A recording from its lines."""
    head, *rest = [*texts] or [""]
    header = _header(head, source)
    config = configuration.load(header.config, base_dir=Path(header.base_dir))
    lines = tuple(_line(text, f"{source}, line {i}") for i, text in enumerate(rest, 2))
    _check(lines, source)
    return Recording(config, tuple(rest), lines, header.live)


def _header(text: str, source: str) -> Header:
    try:
        header = msgspec.json.decode(text, type=Header)
    except msgspec.MsgspecError:
        raise InputError(
            f"{source}, line 1: is not a recording; make one with: moorage simulate --record FILE, "
            "or moorage record FILE"
        ) from None
    if header.recording != VERSION:
        raise InputError(f"{source}: is a recording of version {header.recording}, not {VERSION}")
    return header


def _line(text: str, where: str) -> Line:
    try:
        line = msgspec.json.decode(text, type=Line)
    except msgspec.MsgspecError as error:
        raise InputError(f"{where}: is not a recorded call: {error}") from None
    if line.call not in CALLS:
        raise InputError(f'{where}: call "{line.call}" is not known')
    if line.call == "observe" and (line.kind not in KINDS or not line.news):
        raise InputError(f'{where}: kind "{line.kind}" is not known')
    if line.call == "complete" and (line.ticket is None or line.outcome is None):
        raise InputError(f"{where}: an answer without ticket or outcome")
    return line


def _check(lines: Iterable[Line], source: str) -> None:
    started: set[int] = set()
    for i, line in enumerate(lines, 2):
        if line.call == "start":
            started.add(line.replica)
        elif line.replica not in started:
            raise InputError(f"{source}, line {i}: scheduler {line.replica} has not been started")
    if not started:
        raise InputError(f"{source}: nothing is recorded in it")
