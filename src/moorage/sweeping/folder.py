"""Folder: finished runs as files, so that an interrupted sweep goes on where it was.

A run is a file, named after its parameters and its input, and is there as a whole or not at all: it
is written beside and then moved into place. What an interrupted run leaves behind is not looked at.
"""

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from moorage.errors import InputError
from moorage.sweeping.parameters import Parameters

SUFFIX = ".json"


class Folder:
    """A folder of finished runs; `digest` tells whose."""

    def __init__(self, path: str | os.PathLike[str], digest: str) -> None:
        self.path = Path(path)
        self._digest = digest
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror or error}") from None

    def load(self, parameters: Parameters) -> dict[str, Any] | None:
        """The outcome of a run that is finished, or None."""
        try:
            found = json.loads(self._file(parameters).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        fits = isinstance(found, dict) and found.get("parameters") == parameters
        summary = found.get("summary") if fits and found.get("input") == self._digest else None
        return summary if isinstance(summary, dict) else None

    def keep(self, parameters: Parameters, summary: dict[str, Any]) -> None:
        """Put a finished run into the folder."""
        content = {"parameters": parameters, "input": self._digest, "summary": summary}
        file = self._file(parameters)
        beside = file.with_name(f".{file.name}.{os.getpid()}.part")
        try:
            with beside.open("w", encoding="utf-8") as out:
                json.dump(content, out, indent=2)
                out.write("\n")
                out.flush()
                os.fsync(out.fileno())
            beside.replace(file)
        except OSError as error:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise InputError(f"{file}: {error.strerror or error}") from None

    def _file(self, parameters: Parameters) -> Path:
        said = json.dumps([self._digest, parameters], sort_keys=True)
        name = hashlib.sha256(said.encode()).hexdigest()[:20]
        return self.path / f"run-{name}{SUFFIX}"
