"""Inclusion: which nodes a topology spread constraint includes.

A node is included if it has all the topology keys and, where the constraint honors them, meets the
pod's node selector and required node affinity and has no taint that the pod does not tolerate. For
one node, or for all rows at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

import numpy as np

from moorage.api import selectors
from moorage.api.meta import NodeSelector
from moorage.api.node import Node, Taint
from moorage.api.pod import Pod, Toleration
from moorage.nodes import node_terms
from moorage.nodes.interning import ABSENT, Mask

if TYPE_CHECKING:
    from moorage.nodes.table import NodeTable

REPELLING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Inclusion:
    """The requirements on a node; None stands for "not considered"."""

    keys: tuple[str, ...] = ()
    node_selector: tuple[tuple[str, str], ...] | None = None
    node_affinity: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] | None = None

    @classmethod
    def of(
        cls, pod: Pod, keys: Iterable[str], *, honor_affinity: bool, honor_taints: bool
    ) -> "Inclusion":
        """The inclusion of a pod's constraint, which may honor affinity and taints."""
        spec = pod.spec
        selector = spec.node_selector if honor_affinity else None
        affinity = spec.affinity and spec.affinity.node_affinity if honor_affinity else None
        return cls(
            keys=tuple(sorted(set(keys))),
            node_selector=tuple(sorted(selector.items())) if selector else None,
            node_affinity=affinity.required if affinity else None,
            tolerations=spec.tolerations if honor_taints else None,
        )

    def includes(self, node: Node) -> bool:
        """Whether a node is included."""
        labels = node.labels
        if not all(key in labels for key in self.keys):
            return False
        if any(labels.get(key) != value for key, value in self.node_selector or ()):
            return False
        if self.node_affinity is not None:
            matcher = selectors.compile_node_selector(self.node_affinity)
            if not matcher.matches(labels, node.name):
                return False
        return self._tolerates(node.spec.taints)

    def _tolerates(self, taints: tuple[Taint, ...]) -> bool:
        tolerations = self.tolerations
        return tolerations is None or all(
            taint.effect not in REPELLING or selectors.tolerates_any(tolerations, taint)
            for taint in taints
        )

    def mask(self, table: "NodeTable") -> Mask:
        """Which rows are included; those without a node are not."""
        masks = [table.active_rows]
        masks += [table.label(key).codes != ABSENT for key in self.keys]
        masks += [table.meets(selectors.equals(*pair)) for pair in self.node_selector or ()]
        if self.node_affinity is not None:
            terms = selectors.compile_node_selector(self.node_affinity).terms
            masks.append(node_terms.matching_any(terms, table))
        if self.tolerations is not None:
            masks.append(
                table.per_taint_set(np.array([self._tolerates(t) for t in table.taint_sets]))
            )
        # A copy even of a single mask, because callers write to it.
        return np.array(reduce(and_, masks))
