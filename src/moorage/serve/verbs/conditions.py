"""Conditions of a status."""

from typing import Any

Condition = dict[str, Any]


def with_condition(conditions: list[Condition], new: Condition, at: str) -> list[Condition]:
    """The conditions with one set; its transition time moves only when its status does."""
    for index, old in enumerate(conditions):
        if old.get("type") == new["type"]:
            same = old.get("status") == new["status"]
            since = old.get("lastTransitionTime", at) if same else at
            changed = {**new, "lastTransitionTime": since}
            return [*conditions[:index], changed, *conditions[index + 1 :]]
    return [*conditions, {**new, "lastTransitionTime": at}]


def is_true(status: dict[str, Any], type_: str) -> bool:
    """Whether a condition holds."""
    return any(
        each.get("type") == type_ and each.get("status") == "True"
        for each in status.get("conditions", ())
    )
