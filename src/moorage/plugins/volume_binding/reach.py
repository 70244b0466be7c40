"""Reach: the nodes that something can be used on, told by their labels.

The node affinity of a volume, the allowed topologies of a class and the topology of a storage
capacity all say the same thing in different words. Each is compiled once per distinct content, and
answered for all nodes at once until a node changes.
"""

from collections.abc import Mapping
from functools import lru_cache, reduce
from operator import and_, or_
from typing import NamedTuple

import numpy as np

from moorage import plugin as mp

Requirement = mp.selectors.Requirement
Term = tuple[Requirement, ...]
# A label that a node may have.
Slot = tuple[str, str]

MOST_MASKS = 512


class Reach(NamedTuple):
    """Terms of which one has to hold, each with requirements that all have to; None: everywhere."""

    terms: tuple[Term, ...] | None = None

    def includes(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels is within reach."""
        if self.terms is None:
            return True
        return any(all(r.matches(labels) for r in term) for term in self.terms)

    @property
    def slots(self) -> tuple[Slot, ...] | None:
        """Labels of which every node within reach has at least one; None if there are none such."""
        found: dict[Slot, None] = {}
        for term in self.terms or ((),):
            wanted = next((r for r in term if r.operator == mp.selectors.IN), None)
            if wanted is None:
                return None
            found.update(dict.fromkeys((wanted.key, value) for value in wanted.values))
        return tuple(found)

    @property
    def only_key(self) -> str | None:
        """The label key whose value alone decides, if there is one."""
        terms = self.terms or ()
        plain = len(terms) == 1 and len(terms[0]) == 1 and terms[0][0].operator == mp.selectors.IN
        return terms[0][0].key if plain else None


EVERYWHERE = Reach()
NOWHERE = Reach(())


@lru_cache(maxsize=16384)
def of_affinity(affinity: mp.VolumeNodeAffinity | None) -> Reach:
    """The nodes of a volume's affinity: labels count, fields do not, as in Kubernetes.

    A term that does not parse matches no node, and the other terms still count.
    """
    if affinity is None or affinity.required is None:
        return EVERYWHERE
    compiled = mp.selectors.compile_node_selector(affinity.required)
    return Reach(tuple(term.label_requirements for term in compiled.terms if not term.problems))


def of_topologies(storage_class: mp.StorageClass) -> Reach:
    """The nodes for which a class may make volumes; empty terms match none."""
    if not storage_class.allowed_topologies:
        return EVERYWHERE
    return Reach(
        tuple(
            tuple(Requirement(e.key, mp.selectors.IN, e.values) for e in t.match_label_expressions)
            for t in storage_class.allowed_topologies
            if t.match_label_expressions
        )
    )


def of_selector(selector: mp.LabelSelector | None) -> Reach:
    """The nodes of a label selector; none, or one that does not parse, matches no node."""
    try:
        compiled = mp.selectors.compile_label_selector(selector)
    except mp.selectors.SelectorError:
        return NOWHERE
    return NOWHERE if compiled.matches_nothing else Reach((compiled.requirements,))


class Masks:
    """Which rows are within a reach, worked out once until a node changes."""

    def __init__(self, cluster: mp.Cluster) -> None:
        self._table = cluster.table
        self._stamp = (-1, -1)
        self._masks: dict[Reach, mp.Mask] = {}

    def of(self, reach: Reach) -> mp.Mask:
        """A mask over the whole table; not to be written to."""
        stamp = (self._table.node_changes.position, self._table.capacity)
        if stamp != self._stamp or len(self._masks) >= MOST_MASKS:
            self._stamp, self._masks = stamp, {}
        mask = self._masks.get(reach)
        if mask is None:
            mask = self._masks[reach] = _mask(reach, self._table)
        return mask


def masks(cluster: mp.Cluster) -> Masks:
    """The masks of a cluster, shared by all who ask."""
    return cluster.derived(Masks)


def _mask(reach: Reach, table: mp.NodeTable) -> mp.Mask:
    if reach.terms is None:
        return np.ones(table.capacity, dtype=np.bool_)
    held = [_term_mask(term, table) for term in reach.terms]
    return reduce(or_, held) if held else np.zeros(table.capacity, dtype=np.bool_)


def _term_mask(term: Term, table: mp.NodeTable) -> mp.Mask:
    met = [table.meets(requirement) for requirement in term]
    return reduce(and_, met) if met else np.ones(table.capacity, dtype=np.bool_)
