"""What if the cluster were changed: the answer of `planning.what_if`, as lists and as a map."""

import shlex
from collections.abc import Sequence
from typing import Any

from moorage.nodes.info import NodeInfo
from moorage.planning import prices
from moorage.planning.what_if import Change, WhatIfAnswer
from moorage.ui import documents, new_configs
from moorage.ui.snapshot import ClusterSnapshot

MOST_LISTED = 100
# Resources whose totals are compared.
COMPARED = ("cpu", "memory")

Plain = dict[str, Any]


def try_out(
    snapshot: ClusterSnapshot, changes: Sequence[Change], resource: str = "cpu", group: str = ""
) -> Plain:
    """The pods that changes would place, move or leave pending, and the map with the changes."""
    found = _tried(snapshot, changes)
    old = found.nodes_before
    lists: dict[str, list[Plain]] = {
        "placed": [
            {"pod": key, "to": node, "isNew": key not in old} for key, node in found.placed.items()
        ],
        "moved": [
            {"pod": key, "from": source, "to": node} for key, (source, node) in found.moved.items()
        ],
        **{
            kind: [
                {"pod": key, "from": old.get(key, ""), "reason": why, "isNew": key not in old}
                for key, why in pods
            ]
            for kind, pods in (
                ("pending", found.pending.items()),
                ("lost", found.lost.items()),
                ("blocked", found.blocked.items()),
            )
        },
    }
    after = _infos(snapshot, found)
    there = [info for info in after if _is_there(found, info.name)]
    return {
        "version": snapshot.version,
        "changes": [{"kind": kind, "text": text} for kind, text in changes],
        "clean": found.is_clean,
        "counts": {kind: len(pods) for kind, pods in lists.items()},
        **{kind: pods[:MOST_LISTED] for kind, pods in lists.items()},
        "pendingBefore": found.pending_before,
        "pendingAfter": found.pending_after,
        "totals": [
            {
                "before": documents.figures(
                    name,
                    sum(info.allocatable(name) for info in snapshot.infos()),
                    found.requested_before.get(name, 0),
                ),
                "after": documents.total(there, name),
            }
            for name in COMPARED
        ],
        # Without the changes they would get a node as well.
        "placedFirst": sum(bool(old.get(pod.key)) for pod in snapshot.pending),
        "cost": _cost(found),
        "command": _command(snapshot, changes),
        "map": documents.columns(after, resource, group) | _marks(snapshot, found, after),
    }


def _tried(snapshot: ClusterSnapshot, changes: Sequence[Change]) -> WhatIfAnswer:
    plain, new_config = _split(changes)
    return snapshot.try_out(plain, new_config)


def _split(changes: Sequence[Change]) -> tuple[tuple[Change, ...], str]:
    """The changes other than a new configuration, and the text of that; the last one counts."""
    plain = tuple(change for change in changes if change[0] != new_configs.NAME)
    texts = [text for kind, text in changes if kind == new_configs.NAME]
    return plain, texts[-1] if texts else ""


def _cost(found: WhatIfAnswer) -> Plain | None:
    if found.cost is None:
        return None
    before, after = found.cost.before, found.cost.after
    return found.cost.to_dict() | {
        "unpriced": len(after.unpriced),
        "beforeText": prices.text(before.per_hour),
        "afterText": prices.text(after.per_hour),
        "differenceText": prices.text(found.cost.difference),
    }


def _command(snapshot: ClusterSnapshot, changes: Sequence[Change]) -> str:
    if not snapshot.options:
        return ""
    plain, new_config = _split(changes)
    options = [part for kind, text in plain for part in (f"--{kind}", text)]
    command = ["moorage", "simulate", "what-if", *options, *snapshot.options]
    return new_configs.here_document(command, new_config) if new_config else shlex.join(command)


def node(snapshot: ClusterSnapshot, name: str, changes: Sequence[Change] = ()) -> Plain:
    """A node, with the changes if there are any; a removed node as it was."""
    if changes:
        found = _tried(snapshot, changes)
        if _is_there(found, name):
            table = found.packing.scheduler.cluster.table
            return documents.node(snapshot, table.info(table.row_of[name]))
    return documents.node(snapshot, snapshot.node(name))


def _is_there(found: WhatIfAnswer, name: str) -> bool:
    table = found.packing.scheduler.cluster.table
    row = table.row_of.get(name)
    return row is not None and table.nodes[row] is not None


def _infos(snapshot: ClusterSnapshot, found: WhatIfAnswer) -> list[NodeInfo]:
    """The nodes with the changes; removed ones as they were, new ones at the end."""
    table = found.packing.scheduler.cluster.table
    known = [
        table.info(table.row_of[info.name]) if _is_there(found, info.name) else info
        for info in snapshot.infos()
    ]
    names = {info.name for info in known}
    new = [row for name, row in table.row_of.items() if name not in names]
    return known + [table.info(row) for row in new if table.nodes[row] is not None]


def _marks(snapshot: ClusterSnapshot, found: WhatIfAnswer, infos: Sequence[NodeInfo]) -> Plain:
    """The positions of removed and new nodes, and how many pods come to and leave each node."""
    flows: dict[str, list[int]] = {}

    def count(node: str | None, come: int, leave: int) -> None:
        if node:
            flow = flows.setdefault(node, [0, 0])
            flow[0] += come
            flow[1] += leave

    for node in found.placed.values():
        count(node, 1, 0)
    for source, target in found.moved.values():
        count(source, 0, 1)
        count(target, 1, 0)
    for key in (*found.pending, *found.lost):
        count(found.nodes_before.get(key), 0, 1)
    position = {info.name: index for index, info in enumerate(infos)}
    return {
        "removed": [position[name] for name in position if not _is_there(found, name)],
        "added": list(range(len(snapshot.rows), len(infos))),
        "flows": [[position[name], *flow] for name, flow in flows.items() if name in position],
    }
