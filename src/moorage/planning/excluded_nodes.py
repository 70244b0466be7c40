"""Nodes that are left out of a cluster: by name, by pattern, or by label selector."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from moorage.api import selectors
from moorage.api.meta import KubeObject
from moorage.api.node import Node, NodePool
from moorage.errors import InputError
from moorage.expansion.pools import nodes_of_pools

# A text with one of these is a label selector; names and patterns of nodes have none of them.
SELECTOR_MARKS = ("=", "!", " in ", " notin ")


def without_nodes(objects: Iterable[KubeObject], excluded: Sequence[str]) -> list[KubeObject]:
    """The objects without the excluded nodes; nodes of pools are expanded first.

    Each text is a label selector, or node names and patterns (`*`, `?`, `[abc]`) with commas
    between them. A text that matches no node is refused.
    """
    objects = list(objects)
    pools = [obj for obj in objects if isinstance(obj, NodePool)]
    rest = [obj for obj in objects if not isinstance(obj, NodePool)]
    expanded = [*rest, *nodes_of_pools(pools, rest)]
    nodes = [obj for obj in expanded if isinstance(obj, Node)]
    names = {name for text in excluded for name in _matching(nodes, text)}
    return [obj for obj in expanded if not (isinstance(obj, Node) and obj.name in names)]


def _matching(nodes: Sequence[Node], text: str) -> set[str]:
    if any(mark in text for mark in SELECTOR_MARKS):
        return _selected(nodes, text)
    found: set[str] = set()
    for pattern in text.split(","):
        matching = {node.name for node in nodes if fnmatchcase(node.name, pattern.strip())}
        if not matching:
            raise InputError(f'--exclude-nodes: there is no node "{pattern.strip()}"')
        found |= matching
    return found


def _selected(nodes: Sequence[Node], text: str) -> set[str]:
    try:
        selector = selectors.parse_label_selector(text)
    except selectors.SelectorError as error:
        raise InputError(f'--exclude-nodes: selector "{text}": {error}') from None
    found = {node.name for node in nodes if selector.matches(node.labels)}
    if not found:
        raise InputError(f'--exclude-nodes: selector "{text}" matches no node')
    return found
