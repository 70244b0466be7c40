"""Pools: nodes that people think of as one kind.

Whoever runs clusters labels his nodes with their pool. Where nobody did, the instance type tells
them apart, and where not even that is known, their size.
"""

from collections.abc import Iterable

from moorage.api import quantity, requests
from moorage.api.node import Node
from moorage.errors import InputError

LABELS = (
    "moorage.dev/pool",
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
)
NO_POOL = "(no pool)"
SIZES = (requests.CPU, requests.MEMORY)


class Pools:
    """Which node belongs to which pool."""

    def __init__(self, nodes: Iterable[Node], label: str | None = None) -> None:
        nodes = list(nodes)
        self.label = label or _common_label(nodes)
        if label and not any(label in node.labels for node in nodes):
            raise InputError(f'no node has the label "{label}"')
        self._of = {node.name: self._pool(node) for node in nodes}

    def of(self, node: str) -> str:
        """The pool of a node, by name."""
        return self._of[node]

    def members(self) -> dict[str, list[str]]:
        """Every pool with the names of its nodes."""
        found: dict[str, list[str]] = {}
        for node, pool in self._of.items():
            found.setdefault(pool, []).append(node)
        return found

    def _pool(self, node: Node) -> str:
        return node.labels.get(self.label, NO_POOL) if self.label else _size(node)


def _common_label(nodes: list[Node]) -> str:
    return next((key for key in LABELS if any(key in node.labels for node in nodes)), "")


def _size(node: Node) -> str:
    offered = requests.allocatable(node)
    amounts = {name: amount for name, amount in offered.items() if amount}
    extended = [name for name in amounts if requests.is_extended(name)]
    said = [name for name in (*SIZES, *extended) if name in amounts]
    return ", ".join(f"{quantity.format_value(amounts[name], name)} {name}" for name in said)
