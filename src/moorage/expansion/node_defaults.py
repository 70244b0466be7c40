"""What a kubelet adds to its Node, for nodes that no kubelet registered.

Without `kubernetes.io/hostname` a rule per host does nothing, without `kubernetes.io/os` and `arch`
most published manifests fit nowhere, and without `pods` a node is full. Only nodes in files are
completed: objects that come from an API server, or that a program passes, are taken as they are.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from moorage.api.meta import KubeObject
from moorage.api.node import Node

HOST_NAME = "kubernetes.io/hostname"
# The kubelet sets the labels with `beta` as well.
PLATFORM = {
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/os": "linux",
    "beta.kubernetes.io/arch": "amd64",
}
MAX_PODS = "110"
PODS = "pods"


def labels(name: str, given: Mapping[str, str]) -> dict[str, str]:
    """The labels of a node; those that are given win."""
    platform = {key: given.get(key.removeprefix("beta."), value) for key, value in PLATFORM.items()}
    return {HOST_NAME: name, **platform, **given}


def complete(objects: Iterable[KubeObject]) -> tuple[list[KubeObject], str]:
    """The objects with completed nodes, and a note; empty if nothing was missing."""
    missing: Counter[str] = Counter()
    done = [_completed(obj, missing) if isinstance(obj, Node) else obj for obj in objects]
    return done, _note(missing)


def _completed(node: Node, missing: Counter[str]) -> Node:
    if node.uid:  # An API server has stored it: its labels and resources are what the kubelet set.
        return node
    offered = node.status.allocatable or node.status.capacity
    _count(missing, node.labels, offered)
    if PODS not in offered:
        status = replace(node.status, allocatable={**offered, PODS: MAX_PODS})
        node = replace(node, status=status)
    completed = labels(node.name, node.labels)
    if len(completed) > len(node.labels):
        node = replace(node, metadata=replace(node.metadata, labels=completed))
    return node


def complete_documents(found: Iterable[tuple[str, Any]]) -> str:
    """The same for documents with their locations, in place; malformed ones are left alone."""
    missing: Counter[str] = Counter()
    for _, document in found:
        if not isinstance(document, dict) or document.get("kind") != "Node":
            continue
        meta, status = document.get("metadata"), document.get("status", {})
        if not isinstance(meta, dict) or not isinstance(status, dict) or meta.get("uid"):
            continue
        given, offered = meta.get("labels") or {}, status.get("allocatable")
        offered = offered or status.get("capacity") or {}
        if isinstance(given, dict) and isinstance(offered, dict):
            _count(missing, given, offered)
            meta["labels"] = labels(str(meta.get("name", "")), given)
            if PODS not in offered:
                document["status"] = {**status, "allocatable": {**offered, PODS: MAX_PODS}}
    return _note(missing)


def _count(missing: Counter[str], given: Mapping[str, str], offered: Mapping[str, Any]) -> None:
    """Count what a node lacks, and under "" the node if it lacks anything."""
    found = [text for key, text in _SHOWN.items() if key not in (offered if key == PODS else given)]
    missing.update(found)
    missing[""] += bool(found)


_SHOWN = {
    HOST_NAME: HOST_NAME,
    **{key: f"{key}={value}" for key, value in PLATFORM.items() if not key.startswith("beta.")},
    PODS: f"pods: {MAX_PODS}",
}


def _note(missing: Counter[str]) -> str:
    if not missing[""]:
        return ""
    nodes = "1 Node" if missing[""] == 1 else f"{missing['']:,} Nodes"
    values = ", ".join(text for text in _SHOWN.values() if missing[text])
    return f"assumed for {nodes}, as a kubelet would set it: {values}"
