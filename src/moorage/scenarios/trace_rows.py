"""Public traces: CSV rows by column name, and the nodes and pods made from them.

Errors name file, line and column.
"""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from moorage.api.meta import KubeObject, ObjectMeta
from moorage.api.node import Node, NodeStatus
from moorage.api.pod import Affinity, Container, Pod, PodSpec, ResourceRequirements
from moorage.api.quantity import Quantity
from moorage.errors import InputError
from moorage.expansion import node_defaults

Amounts = dict[str, Quantity]

MOST_PODS = "1000"  # Traces have no limit of pods per node; large enough not to matter.


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One line: its position in the file, and its cells by column."""

    where: str
    cells: dict[str, str]

    def text(self, column: str) -> str:
        """A cell; empty if it is, or if the file has no such column."""
        return (self.cells.get(column) or "").strip()

    def number(self, column: str, otherwise: float | None = None) -> float:
        """A cell as a number; an empty one is `otherwise`, if that is given."""
        cell = self.text(column)
        if not cell and otherwise is not None:
            return otherwise
        try:
            found = float(cell)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            raise InputError(f'{self.where}, {column}: must be a number, is "{cell}"')
        return found

    def time(self, column: str) -> float | None:
        """A cell as a time; None if it is empty."""
        return self.number(column) if self.text(column) else None

    def amount(self, column: str, otherwise: float | None = None) -> float:
        """A cell as a number that is not negative."""
        found = self.number(column, otherwise)
        if found < 0:
            raise InputError(f"{self.where}, {column}: must not be negative, is {found:g}")
        return found


def read(
    path: str | Path, needed: Sequence[str], positions: Sequence[str] | None = None
) -> Iterator[CsvRow]:
    """All rows of a file. With `positions`, a file without a head has those columns, in order."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            yield from _rows(path, csv.reader(file), needed, positions)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not text; expected CSV") from None
    except csv.Error as error:
        raise InputError(f"{path}: is not CSV: {error}") from None


def _rows(
    path: str | Path,
    lines: Iterator[list[str]],
    needed: Sequence[str],
    positions: Sequence[str] | None,
) -> Iterator[CsvRow]:
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path}: is empty")
    head = [cell.strip().lower().replace(" ", "_") for cell in first]
    has_head = positions is None or any(cell in needed for cell in head)
    if positions is not None and not has_head:
        head = list(positions)
    missing = [column for column in needed if column not in head]
    if missing:
        raise InputError(
            f"{path}, line 1: no column {', '.join(missing)}; there is {', '.join(head)}"
        )
    every = lines if has_head else chain([first], lines)
    for number, cells in enumerate(every, 2 if has_head else 1):
        if any(cells):
            yield CsvRow(f"{path}, line {number}", dict(zip(head, cells, strict=False)))


def make_node(name: str, offered: Amounts, labels: dict[str, str]) -> KubeObject:
    """A node of a trace."""
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, labels=node_defaults.labels(name, labels)),
        status=NodeStatus(allocatable=offered | {"pods": MOST_PODS}),
    )


def make_template(
    name: str,
    requested: Amounts,
    *,
    labels: dict[str, str] | None = None,
    priority: int | None = None,
    affinity: Affinity | None = None,
) -> Pod:
    """The template of a trace's pods."""
    container = Container(name="main", resources=ResourceRequirements(requests=requested))
    return Pod(
        api_version="v1",
        kind="Pod",
        metadata=ObjectMeta(name=name, labels=labels or {}),
        spec=PodSpec(priority=priority, containers=(container,), affinity=affinity),
    )
