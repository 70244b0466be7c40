"""Table: the response to `kubectl get`, column headers and a row per object.

Columns of custom resources come from `additionalPrinterColumns` of their definition.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from moorage.api.defaults import IS_DEFAULT_CLASS
from moorage.cluster.resources import DEFINITIONS, Resource
from moorage.cluster.store import Store
from moorage.controllers.objects import Object, value_at
from moorage.serve.rest import responses
from moorage.serve.rest.tables import cells
from moorage.serve.rest.tables.column import Cell, TableColumn
from moorage.serve.rest.tables.columns import AGE, COLUMNS
from moorage.serve.rest.tables.event_columns import EVENT_COLUMNS
from moorage.serve.rest.tables.stored_kind_columns import STORED_KIND_COLUMNS


def render_table(
    resource: Resource,
    objects: Sequence[Object],
    store: Store,
    now: float,
    include_object: str,
    api_version: str = responses.META_V1,
) -> Object:
    """The objects as a Table; `include_object` is None, Metadata or Object."""
    columns = tuple(_columns(resource, store))
    rows = []
    for obj in objects:
        # A bookmark is a row, too: the cells of an object that has nothing but a version.
        row: Object = {"cells": [each.cell(obj, now) for each in columns]}
        if include_object == "Metadata":
            row["object"] = responses.partial_metadata(obj, api_version)
        elif include_object == "Object":
            row["object"] = obj
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": {},
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": rows,
    }


def object_name(obj: Object, _now: float) -> str:
    """The name of an object; a default class is marked."""
    annotations = value_at(obj, "metadata", "annotations") or {}
    is_default = any(annotations.get(each) == "true" for each in IS_DEFAULT_CLASS)
    return cells.text(obj, "metadata", "name") + (" (default)" if is_default else "")


_NAME = TableColumn("Name", object_name)


def _columns(resource: Resource, store: Store) -> Sequence[TableColumn]:
    if resource.custom:
        return _NAME, *(list(_custom_columns(resource, store)) or [AGE])
    if resource.kind == "Event":
        return EVENT_COLUMNS
    found = COLUMNS.get(resource.kind) or STORED_KIND_COLUMNS.get(resource.kind)
    return _NAME, *(found or (AGE,))


def _definition(column: TableColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": "name" if column is _NAME else "",
        "description": "",
        "priority": column.priority,
    }


def _custom_columns(resource: Resource, store: Store) -> Iterator[TableColumn]:
    """The columns that the definition of a custom resource declares."""
    definition = store.find(DEFINITIONS, "", f"{resource.plural}.{resource.group}")
    for version in cells.maps(definition, "spec", "versions"):
        if version.get("name") == resource.version:
            for each in cells.maps(version, "additionalPrinterColumns"):
                type_ = cells.text(each, "type", default="string")
                cell = _custom_cell(cells.text(each, "jsonPath"), is_date=type_ == "date")
                name, priority = cells.text(each, "name"), cells.number(each, "priority")
                yield TableColumn(name, cell, type_, priority)
            return


_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']+)'\]")


def _custom_cell(path: str, *, is_date: bool) -> Cell:
    """The value at a simple JSON path: fields and indices, no filters and no wildcards."""
    steps = _STEP.findall(path)

    def cell(obj: Any, now: float) -> Any:
        for field, index, quoted in steps:
            if index:
                inside = isinstance(obj, list) and int(index[:9]) < len(obj)
                obj = obj[int(index[:9])] if inside else None
            else:
                obj = value_at(obj, field or quoted)
        value = str(obj) if isinstance(obj, dict | list) else obj
        return cells.age(value, now) if is_date else value

    return cell
