"""Columns that a definition asks for with `additionalPrinterColumns`."""

import re
from typing import Any

from moorage.serve.controllers.objects import Object
from moorage.serve.resources import DEFINITIONS, Resource
from moorage.serve.rest.tables import cells, others
from moorage.serve.rest.tables.cells import Column
from moorage.serve.store import Store

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']+)'\]")


def printer_columns(resource: Resource, store: Store) -> list[dict[str, Any]]:
    """The columns that the resource's definition states; none if it says nothing."""
    definition = store.find(DEFINITIONS, "", f"{resource.plural}.{resource.group}")
    for version in cells.maps(definition, "spec", "versions"):
        if version.get("name") == resource.version:
            return [dict(each) for each in cells.maps(version, "additionalPrinterColumns")]
    return []


def columns(stated: list[dict[str, Any]]) -> tuple[Column, ...]:
    """Their heads."""
    if not stated:
        return others.AGE_COLUMNS
    return tuple(
        Column(
            cells.text(each, "name"),
            cells.text(each, "type", otherwise="string"),
            cells.number(each, "priority"),
        )
        for each in stated
    )


def row(obj: Object, stated: list[dict[str, Any]], now: float) -> list[Any]:
    """Their values in one object."""
    if not stated:
        return others.age(obj, now)
    found = []
    for each in stated:
        value = _find(obj, cells.text(each, "jsonPath"))
        is_date = cells.text(each, "type") == "date"
        found.append(cells.age(value, now) if is_date else value)
    return found


def _find(obj: Any, path: str) -> Any:
    """The value at a simple JSON path: fields and indices, nothing that searches."""
    for field, index, quoted in _STEP.findall(path):
        if index:
            inside = isinstance(obj, list) and int(index[:9]) < len(obj)
            obj = obj[int(index[:9])] if inside else None
        else:
            obj = cells.at(obj, field or quoted)
    return str(obj) if isinstance(obj, dict | list) else obj
