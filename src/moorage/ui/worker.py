"""A process that keeps the latest snapshot and answers requests about it.

A scheduling cycle for a request must not delay the server's own work, and code below the shells
is not made for several threads. So the server sends the objects, as bytes, to this process.
"""

import gc
import signal
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from moorage import garbage
from moorage.api.config import Source
from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.errors import MoorageError
from moorage.ui import documents, history, what_if
from moorage.ui.snapshot import ClusterSnapshot
from moorage.ui.timeline import Timeline

# Stored objects: the name of the kind, and JSON.
Bodies = list[tuple[str, bytes]]

ANSWERS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "cluster": documents.cluster,
    "nodes": documents.nodes,
    "matching": documents.matching,
    "node": what_if.node,
    "pods": documents.pods,
    "pending": documents.pending,
    "pod": documents.pod,
    "what_if": what_if.try_out,
    # What only some sources have.
    "timeline": lambda snapshot: {},
    "activity": lambda snapshot: {},
    "history": lambda snapshot, key, node: {"lines": []},
}

KEPT = ("cluster", "nodes", "pending")
MOST_KEPT = 20

_snapshot: ClusterSnapshot | None = None


class UnanswerableRequest(Exception):
    """A request that cannot be answered, with the reason."""


def begin() -> None:
    """Ctrl-C reaches all processes of a terminal; only the main process handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def load(bodies: Bodies, config: Source, title: str, version: int) -> None:
    """Replace the snapshot of this process."""
    global _snapshot  # The process exists to keep it.
    _snapshot = None  # Two at once would take twice the memory.
    gc.unfreeze()
    gc.collect()
    with garbage.not_collected():
        objects = [obj for kind, body in bodies if (obj := decode(kind, body)) is not None]
        _snapshot = ClusterSnapshot.of_api_server(objects, config, title=title, version=version)
        gc.freeze()


def decode(kind: str, body: bytes) -> KubeObject | None:
    """An object of the API server; None if it is invalid, as for the scheduler."""
    try:
        found: KubeObject = msgspec.json.decode(body, type=KINDS[kind].struct)
    except msgspec.ValidationError:
        return None
    return found


def uid_of(key: str) -> str:
    """The UID of a pod; empty if it is unknown."""
    pod = None if _snapshot is None else _snapshot.pods.get(key)
    return "" if pod is None else pod.uid


def answer(question: str, arguments: dict[str, Any]) -> bytes:
    """The answer of this process' snapshot as JSON."""
    assert _snapshot is not None, "a request before the first snapshot"
    return answer_about(_snapshot, question, arguments)


def answer_at(timeline: Timeline, question: str, arguments: dict[str, Any], at: float) -> bytes:
    """The answer about a recorded cluster at a time, as JSON; raises UnanswerableRequest."""
    if question == "timeline":
        return msgspec.json.encode(timeline.document())
    snapshot = timeline.snapshot(at)
    if question == "history":
        if node := arguments["node"]:
            found = history.of_node(timeline.histories.all_facts(at), node)
            return msgspec.json.encode({"lines": found})
        pod = snapshot.pods.get(arguments["key"])
        facts = [] if pod is None else timeline.histories.facts(pod.uid, at)
        return msgspec.json.encode({"lines": history.lines(facts)})
    return answer_about(snapshot, question, arguments)


def answer_about(snapshot: ClusterSnapshot, question: str, arguments: dict[str, Any]) -> bytes:
    """The answer as JSON; raises UnanswerableRequest."""
    # What every view asks for is made once per snapshot.
    key = (question, *arguments.values()) if question in KEPT else None
    if key is not None and key in snapshot.answers:
        return snapshot.answers[key]
    try:
        body = msgspec.json.encode(ANSWERS[question](snapshot, **arguments))
    except MoorageError as error:
        raise UnanswerableRequest(str(error)) from None
    if key is not None and len(snapshot.answers) < MOST_KEPT:
        snapshot.answers[key] = body
    return body
