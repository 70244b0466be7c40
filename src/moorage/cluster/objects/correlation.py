"""Which part of the stored object a part of its update corresponds to.

A part that is equal to the stored one need not satisfy rules that were added to the schema later
(Kubernetes calls it ratcheting). Elements of a list correspond only if the list has keys
(`x-kubernetes-list-type: map`).
"""

from functools import cached_property
from typing import Any

Schema = dict[str, Any]


class Correlation:
    """A value and the stored value that it replaces."""

    def __init__(self, value: Any, old: Any, schema: Schema) -> None:
        self.value = value
        self.old = old
        self.schema = schema

    @cached_property
    def is_unchanged(self) -> bool:
        """Whether the value equals the stored one; the order of a list with keys is no change."""
        value, old = self.value, self.old
        if isinstance(value, dict) and isinstance(old, dict):
            if len(value) != len(old):
                return False
            parts = [self.key(key) for key in value]
            return all(part is not None and part.is_unchanged for part in parts)
        if isinstance(value, list) and isinstance(old, list) and has_keys(self.schema):
            items = [self.index(i) for i in range(len(value))]
            return len(value) == len(old) and all(item and item.is_unchanged for item in items)
        return type(value) is type(old) and bool(value == old)

    def key(self, name: str) -> "Correlation | None":
        """The part for a field; None if one of the objects has none, or no schema describes it."""
        if not isinstance(self.value, dict) or not isinstance(self.old, dict):
            return None
        if name not in self.value or name not in self.old:
            return None
        properties = self.schema.get("properties") or {}
        schema = properties.get(name, self.schema.get("additionalProperties"))
        if not isinstance(schema, dict):
            return None
        return Correlation(self.value[name], self.old[name], schema)

    def index(self, index: int) -> "Correlation | None":
        """The part for an element; None if the stored list has no element with its keys."""
        items = self.schema.get("items")
        if not isinstance(self.value, list) or not isinstance(items, dict):
            return None
        old = self._old_items.get(key_of(self.value[index], self.schema))
        return None if old is None else Correlation(self.value[index], old, items)

    @cached_property
    def _old_items(self) -> dict[tuple[str, ...], Any]:
        return items_by_key(self.old, self.schema)


def has_keys(schema: Schema) -> bool:
    """Whether the elements of a list are identified by keys."""
    return schema.get("x-kubernetes-list-type") == "map"


def items_by_key(items: Any, schema: Schema) -> dict[tuple[str, ...], Any]:
    """The elements of a list with keys; empty for any other value."""
    if not isinstance(items, list) or not has_keys(schema):
        return {}
    return {key_of(each, schema): each for each in items}


def key_of(item: Any, schema: Schema) -> tuple[str, ...]:
    """What identifies an element of a list with keys."""
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    return tuple(repr(item.get(key)) for key in keys) if isinstance(item, dict) else (repr(item),)
