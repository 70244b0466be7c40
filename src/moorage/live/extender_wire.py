"""What extenders are sent and what they answer, as bytes: Kubernetes' extender v1 types.

Members are sent under their capitalised names, and null where there is nothing to say. Answers
are read whatever the case of their keys: many extenders write them in lower camel case.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core.extenders import ExtenderVictims, FilterResult
from moorage.framework.effects import BindPod
from moorage.framework.post_filter import Candidate

S = TypeVar("S", bound=Struct)


class ExtenderError(Exception):
    """An extender said that it failed, or what it said makes no sense."""


class Fragments:
    """Objects as JSON; a node is encoded once for as long as it does not change."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[Node, Raw]] = {}

    def node(self, node: Node) -> Raw:
        """A node as JSON."""
        known = self._nodes.get(node.name)
        if known is None or known[0] is not node:
            known = self._nodes[node.name] = (node, Raw(msgspec.json.encode(node)))
        return known[1]

    def keep_only(self, nodes: Sequence[Node]) -> None:
        """Drop nodes that are gone, once they are the greater part."""
        if len(self._nodes) > 2 * len(nodes) + 100:
            names = {node.name for node in nodes}
            self._nodes = {name: kept for name, kept in self._nodes.items() if name in names}


def node_question(pod: Pod, nodes: Sequence[Node], fragments: Fragments, *, names: bool) -> bytes:
    """What filter and prioritize are sent; by name to those who know the nodes themselves."""
    listed: Any = None
    if not names:
        listed = {"metadata": {}, "items": [fragments.node(node) for node in nodes]}
        fragments.keep_only(nodes)
    named = [node.name for node in nodes] if names else None
    return msgspec.json.encode({"Pod": pod, "Nodes": listed, "NodeNames": named})


def preempt_question(pod: Pod, candidates: Mapping[str, Candidate], *, names: bool) -> bytes:
    """What preempt is sent; victims by UID to those who know the nodes themselves."""
    victims = {
        node: {
            "Pods": [{"UID": v.uid} if names else v for v in each.victims],
            "NumPDBViolations": each.violations,
        }
        for node, each in candidates.items()
    }
    return msgspec.json.encode(
        {
            "Pod": pod,
            "NodeNameToVictims": None if names else victims,
            "NodeNameToMetaVictims": victims if names else None,
        }
    )


def bind_question(request: BindPod) -> bytes:
    """What bind is sent."""
    pod = request.pod
    return msgspec.json.encode(
        {
            "PodName": pod.name,
            "PodNamespace": pod.namespace,
            "PodUID": pod.uid,
            "Node": request.node,
        }
    )


class _Metadata(Struct, frozen=True):
    name: str = ""


class _Node(Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _Nodes(Struct, frozen=True):
    items: list[_Node] | None = None


class _Filtered(Struct, frozen=True, rename={"unresolvable": "failedandunresolvablenodes"}):
    nodes: _Nodes | None = None
    nodenames: list[str] | None = None
    failednodes: dict[str, str] | None = None
    unresolvable: dict[str, str] | None = None
    error: str | None = None


class _Host(Struct, frozen=True):
    host: str = ""
    score: int = 0


class _MetaPod(Struct, frozen=True):
    uid: str = ""


class _Victims(Struct, frozen=True):
    pods: list[_MetaPod] | None = None
    numpdbviolations: int = 0


class _Preempted(Struct, frozen=True):
    nodenametometavictims: dict[str, _Victims | None] | None = None


class _Bound(Struct, frozen=True):
    error: str | None = None


def passed(answer: bytes, *, names: bool) -> FilterResult:
    """The answer to filter."""
    said = _read(answer, _Filtered)
    if said.error:
        raise ExtenderError(said.error)
    nodes: list[str] = []
    if names and said.nodenames is not None:
        nodes = said.nodenames
    elif said.nodes is not None:
        nodes = [node.metadata.name for node in said.nodes.items or ()]
    return FilterResult(
        nodes=nodes, failed=said.failednodes or {}, unresolvable=said.unresolvable or {}
    )


def scores(answer: bytes) -> list[tuple[str, int]]:
    """The answer to prioritize."""
    plain = _plain(answer)
    if not isinstance(plain, list | None):
        raise ExtenderError(f"a list of hosts is expected, this is {type(plain).__name__}")
    hosts = [_converted(_folded(each), _Host) for each in plain or ()]
    return [(each.host, each.score) for each in hosts]


def chosen(answer: bytes) -> dict[str, ExtenderVictims]:
    """The answer to preempt."""
    said = _read(answer, _Preempted)
    found = said.nodenametometavictims or {}
    return {
        node: ExtenderVictims(tuple(pod.uid for pod in each.pods or ()), each.numpdbviolations)
        for node, each in ((node, each or _Victims()) for node, each in found.items())
    }


def check_bound(answer: bytes) -> None:
    """Raise what the answer to bind complains about."""
    said = _read(answer, _Bound)
    if said.error:
        raise ExtenderError(said.error)


# Maps whose keys are names, which keep their case.
_NAMED = ("failednodes", "failedandunresolvablenodes", "nodenametometavictims")


def _read(answer: bytes, struct: type[S]) -> S:
    plain = _plain(answer)
    return _converted(_folded({} if plain is None else plain), struct)


def _plain(answer: bytes) -> Any:
    try:
        return msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as trouble:
        raise ExtenderError(f"the answer is not JSON: {trouble}") from None


def _converted(plain: Any, struct: type[S]) -> S:
    try:
        return msgspec.convert(plain, struct)
    except msgspec.ValidationError as trouble:
        raise ExtenderError(f"the answer cannot be read: {trouble}") from None


def _folded(plain: Any) -> Any:
    """Keys in lower case; null is as good as absent, as in Go."""
    match plain:
        case dict():
            members = {key.lower(): member for key, member in plain.items() if member is not None}
            return {key: _member(key, member) for key, member in members.items()}
        case list():
            return [_folded(each) for each in plain]
        case _:
            return plain


def _member(key: str, member: Any) -> Any:
    if key in _NAMED and isinstance(member, dict):
        return {name: _folded(each) for name, each in member.items()}
    return _folded(member)
