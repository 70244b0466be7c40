"""Answers compared and shown, for complaints that can be acted on."""

from typing import Any

import msgspec

from moorage.framework.status import Status
from moorage.testing.cycle import Answers


def check_same(one: Answers, other: Answers, complaint: str) -> None:
    """Complain if two sets of answers differ."""
    for what in Answers._fields:
        before, after = getattr(one, what), getattr(other, what)
        assert before == after, f"{complaint}\n  {what}: {shown(before)}\n  then: {shown(after)}"


def shown(thing: Any) -> str:
    """A status, a pod or a node in one line."""
    if isinstance(thing, Status):
        return f"{thing.code.label} {list(thing.reasons)}"
    return msgspec.json.encode(thing).decode()
