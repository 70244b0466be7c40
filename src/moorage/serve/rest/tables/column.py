"""TableColumn: a column of a table, and how the usual ones are made."""

from collections.abc import Callable
from typing import Any, NamedTuple

from moorage.controllers.objects import Object, value_at
from moorage.serve.rest.tables.cells import maps, number, text

Cell = Callable[[Object, float], Any]
"""Reads a cell from an object; the second argument is the time of the request."""


class TableColumn(NamedTuple):
    """A column; `kubectl get -o wide` adds those of priority 1."""

    name: str
    cell: Cell
    type: str = "string"
    priority: int = 0


def path_cell(path: str, read: Callable[..., Any] = text, **options: Any) -> Cell:
    """A cell that is read at a path."""
    steps = path.split(".")
    return lambda obj, now: read(obj, *steps, **options)


def text_column(name: str, path: str, default: str = "") -> TableColumn:
    """A text at a path."""
    return TableColumn(name, path_cell(path, default=default))


def integer_column(name: str, path: str) -> TableColumn:
    """A number at a path."""
    return TableColumn(name, path_cell(path, number), "integer")


def declared_text(column: TableColumn) -> TableColumn:
    """The same column; an API server declares it as text although its cells are none."""
    return column._replace(type="string")


def count_column(name: str, path: str) -> TableColumn:
    """The length of a list at a path."""
    found = path_cell(path, maps)
    return TableColumn(name, lambda obj, now: len(found(obj, now)), "integer")


def boolean_column(name: str, path: str) -> TableColumn:
    """Whether the value at a path is true."""
    value = path_cell(path, value_at)
    return TableColumn(name, lambda obj, now: value(obj, now) is True, "boolean")


def wide(column: TableColumn) -> TableColumn:
    """The same column, for `kubectl get -o wide` only."""
    return column._replace(priority=1)
