"""Node terms: which rows match the compiled terms of a node selector.

The same results as `NodeSelectorMatcher` and `NodeTerm` for one node, for many rows at once.
Nothing is cached here: callers cache the result until a node changes.
"""

from collections.abc import Iterable
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

import numpy as np

from moorage.api import selectors
from moorage.api.selectors import NodeTerm, Requirement
from moorage.nodes.interning import Mask

if TYPE_CHECKING:
    from moorage.nodes.rows import Rows


def matching_any(terms: Iterable[NodeTerm], rows: "Rows") -> Mask:
    """Which rows match one of the terms; without terms, none does."""
    masks = [matching(term, rows) for term in terms]
    return reduce(or_, masks) if masks else _constant(rows, value=False)


def matching(term: NodeTerm, rows: "Rows") -> Mask:
    """Which rows meet all requirements of a term; one that does not parse matches none."""
    if term.problems:
        return _constant(rows, value=False)
    labels = [rows.meets(requirement) for requirement in term.label_requirements]
    fields = [_meeting_field(requirement, rows) for requirement in term.field_requirements]
    return reduce(and_, labels + fields)


def _meeting_field(requirement: Requirement, rows: "Rows") -> Mask:
    if requirement.key != selectors.NODE_NAME_FIELD:
        return _constant(rows, value=requirement.accepts(""))  # as an unknown field reads
    named = rows.named(requirement.values)
    return named if requirement.operator == selectors.IN else ~named


def _constant(rows: "Rows", *, value: bool) -> Mask:
    return np.full(len(rows), value, dtype=np.bool_)
