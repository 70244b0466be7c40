"""The answers of the API as plain data; docs/ui.md describes them.

A list that can be long is cut, and its full length is beside it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from moorage.api import requests, texts
from moorage.api.pod import Pod
from moorage.errors import InputError
from moorage.explaining import text
from moorage.explaining.explanation import Explanation
from moorage.nodes.info import NodeInfo
from moorage.nodes.resources import exact_sum
from moorage.ui import queries
from moorage.ui.queries import Query
from moorage.ui.snapshot import CORDONED, NOT_READY, TAINTED, ClusterSnapshot, state_of

MOST_PODS = 200
MOST_LISTED = 100
MOST_NAMES = 50
MOST_RANKED = 10
MOST_VALUES = 300
GONE = "This pod does not exist: it has ended, was deleted, or was not created yet."

Plain = dict[str, Any]

FIRST_RESOURCES = ("cpu", "memory", "pods")


def cluster(snapshot: ClusterSnapshot) -> Plain:
    """Totals, and what the map can be coloured, grouped and searched by."""
    labels: dict[str, set[str]] = {}
    taints: Counter[str] = Counter()
    states: Counter[int] = Counter()
    for info in snapshot.infos():
        state = state_of(info.node)
        states.update(flag for flag in (CORDONED, TAINTED, NOT_READY) if state & flag)
        taints.update(f"{taint.key}={taint.value}:{taint.effect}" for taint in info.taints)
        for key, value in info.labels.items():
            labels.setdefault(key, set()).add(value)
    return {
        "title": snapshot.title,
        "version": snapshot.version,
        "at": snapshot.at,
        "nodes": len(snapshot.rows),
        "pods": len(snapshot.pods) - len(snapshot.pending),
        "pending": len(snapshot.pending),
        "states": {
            "cordoned": states[CORDONED],
            "tainted": states[TAINTED],
            "notReady": states[NOT_READY],
        },
        "resources": [_total(snapshot, name) for name in _resources(snapshot)],
        "labels": {key: len(values) for key, values in sorted(labels.items())},
        "taints": dict(taints.most_common(MOST_LISTED)),
        "scorePlugins": sorted(
            {
                name
                for profile in snapshot.run.scheduler.profiles.values()
                for name in profile.score_order
            }
        ),
    }


def nodes(snapshot: ClusterSnapshot, resource: str = "cpu", group: str = "") -> Plain:
    """Every node as columns: name, state, allocatable, requested, and the group by a label."""
    return {"version": snapshot.version, **columns(list(snapshot.infos()), resource, group)}


def columns(infos: Sequence[NodeInfo], resource: str, group: str) -> Plain:
    """Nodes as columns."""
    codes = []
    values: dict[str, int] = {}
    for info in infos:
        value = info.labels.get(group, "") if group else ""
        codes.append(values.setdefault(value, len(values)))
    if len(values) > MOST_VALUES:
        raise InputError(f"label {group!r} has {len(values):,} values; the limit is {MOST_VALUES}")
    return {
        "resource": resource,
        "names": [info.name for info in infos],
        "states": [state_of(info.node) for info in infos],
        "allocatable": [info.allocatable(resource) for info in infos],
        "requested": [_requested(info, resource) for info in infos],
        "group": {"key": group, "values": list(values), "codes": codes},
    }


def matching(snapshot: ClusterSnapshot, query: str) -> Plain:
    """The positions, in the list of `nodes`, of those that a search matches."""
    search = queries.parse(query)
    found = [index for index, info in enumerate(snapshot.infos()) if search.matches(info.node)]
    if search.pod_texts:
        names = {pod.node_name for pod in _matching_pods(snapshot, search)}
        found = [index for index in found if snapshot.table.name(snapshot.rows[index]) in names]
    return {"version": snapshot.version, "query": query, "positions": found}


def node(snapshot: ClusterSnapshot, info: NodeInfo) -> Plain:
    """A node: what is free, its labels and taints, and its pods, the largest first."""
    listed = [_placed(info, each.pod, dict(each.usage.requested)) for each in _pods(info)]
    state = state_of(info.node)
    return {
        "version": snapshot.version,
        "name": info.name,
        "cordoned": bool(state & CORDONED),
        "ready": not state & NOT_READY,
        "resources": [_amounts(info, resource) for resource in _resources(snapshot)],
        "labels": dict(sorted(info.labels.items())),
        "taints": [
            {"key": taint.key, "value": taint.value, "effect": taint.effect}
            for taint in info.taints
        ],
        "podCount": info.pod_count,
        "pods": sorted(listed, key=lambda each: (-each["share"], -each["priority"], each["pod"]))[
            :MOST_PODS
        ],
    }


def _matching_pods(snapshot: ClusterSnapshot, search: Query) -> list[Pod]:
    return [pod for key, pod in snapshot.pods.items() if search.matches_pod(key)]


def pods(snapshot: ClusterSnapshot, query: str = "") -> Plain:
    """Pods that a search matches: their names, and their nodes if it is about nodes as well."""
    search = queries.parse(query if queries.POD in query else queries.POD + query)
    found = _matching_pods(snapshot, search)
    if search.tests:
        names = {info.name for info in snapshot.infos() if search.matches(info.node)}
        found = [pod for pod in found if pod.node_name in names]
    return {
        "version": snapshot.version,
        "count": len(found),
        "pods": [{"pod": pod.key, "node": pod.node_name} for pod in found[:MOST_LISTED]],
    }


def pending(snapshot: ClusterSnapshot) -> Plain:
    """Pending pods by reason."""
    groups, left_out = snapshot.pending_groups
    return {
        "version": snapshot.version,
        "count": len(snapshot.pending),
        "groups": [
            {
                "reason": group.reason,
                "fits": group.is_placed,
                "count": len(group.pods),
                "pods": group.pods[:MOST_LISTED],
            }
            for group in groups
        ],
        "notExplained": {"count": len(left_out), "pods": left_out[:MOST_LISTED]},
    }


def pod(snapshot: ClusterSnapshot, key: str, compare: str = "") -> Plain:
    """A pod with its explanation, and a node compared with the selected one."""
    if key not in snapshot.pods:  # A page shows a pod for longer than many pods exist.
        return {"version": snapshot.version, "pod": key, "gone": True, "headline": GONE}
    explained = snapshot.explain(key)
    found = explained.pod
    return {
        "version": snapshot.version,
        "pod": key,
        "gone": False,
        "node": explained.runs_on,
        "priority": found.priority,
        "schedulerName": found.spec.scheduler_name,
        "requests": {
            name: texts.amount(amount, name)
            for name, amount in requests.requested(found).items()
            if amount
        },
        "labels": dict(sorted(found.labels.items())),
        "headline": text.headline(explained),
        "message": explained.message,
        "picked": explained.picked,
        "nodes": explained.nodes,
        "feasible": len(explained.feasible),
        "advice": explained.advice,
        "funnel": [step._asdict() for step in explained.funnel],
        "rejections": [
            {
                "reason": group.reason,
                "plugin": group.plugin,
                "count": len(group.nodes),
                "nodes": group.nodes[:MOST_NAMES],
            }
            for group in explained.rejection_groups
        ],
        "scores": _scores(explained),
        "preemption": _preemption(explained),
        "compared": _compared(snapshot, explained, compare) if compare else None,
    }


def _scores(explained: Explanation) -> Plain:
    """The best nodes with the score of each plugin; weights are included in the scores."""
    ranking = explained.ranking
    shown = ranking.shown(MOST_RANKED) if explained.totals else []
    return {
        "plugins": ranking.plugins,
        "equal": ranking.equal,
        "nodes": [
            {"node": name, "total": explained.totals[name], "scores": explained.scores[name]}
            for name in shown
        ],
    }


def _compared(snapshot: ClusterSnapshot, explained: Explanation, name: str) -> Plain:
    """Why a node was rejected, or its scores next to those of the selected node."""
    snapshot.node(name)  # Raises InputError for an unknown node.
    if (status := explained.rejected.get(name)) is not None:
        return {"node": name, "reason": status.message, "plugin": status.plugin, "scores": []}
    ours, theirs = explained.scores.get(explained.picked, {}), explained.scores.get(name, {})
    rows = [{"plugin": each, "selected": ours[each], "node": theirs.get(each, 0)} for each in ours]
    return {
        "node": name,
        "reason": "",
        "plugin": "",
        "total": explained.totals.get(name),
        "selected": explained.totals.get(explained.picked),
        "scores": sorted(rows, key=lambda row: row["node"] - row["selected"]),
    }


def _preemption(explained: Explanation) -> Plain:
    options = explained.preemption_options
    return {
        "message": explained.preemption_message,
        "nominated": explained.nominated,
        "count": len(options),
        "candidates": [
            {"node": each.node, "victims": text.victims(each), "harm": text.harm(each)}
            for each in options[:MOST_RANKED]
        ],
    }


def _resources(snapshot: ClusterSnapshot) -> list[str]:
    """The resources that some node has; cpu, memory and pods first."""
    columns = snapshot.table.allocatable_columns.columns
    there = {name for name, amounts in columns.items() if amounts.any()}
    first = [name for name in FIRST_RESOURCES if name in there]
    return [*first, *sorted(there - set(first))]


def _requested(info: NodeInfo, resource: str) -> int:
    return info.pod_count if resource == "pods" else info.requested(resource)


def _total(snapshot: ClusterSnapshot, resource: str) -> Plain:
    table = snapshot.table.slice(np.array(snapshot.rows, dtype=np.intp))
    requested = table.pod_count if resource == "pods" else table.requested(resource)
    return figures(resource, exact_sum(table.allocatable(resource)), exact_sum(requested))


def total(infos: Sequence[NodeInfo], resource: str) -> Plain:
    """A resource over nodes."""
    return figures(
        resource,
        sum(info.allocatable(resource) for info in infos),
        sum(_requested(info, resource) for info in infos),
    )


def _amounts(info: NodeInfo, resource: str) -> Plain:
    return figures(resource, info.allocatable(resource), _requested(info, resource))


def figures(resource: str, allocatable: int, requested: int) -> Plain:
    """Amounts as numbers (cpu in milli), and as texts."""
    return {
        "name": resource,
        "allocatable": allocatable,
        "requested": requested,
        "allocatableText": texts.amount(allocatable, resource),
        "requestedText": texts.amount(requested, resource),
        "freeText": texts.amount(allocatable - requested, resource),
    }


def _pods(info: NodeInfo) -> list[Any]:
    return list(info.placed().values())


def _placed(info: NodeInfo, pod: Pod, requested: dict[str, int]) -> Plain:
    """A pod on a node; `share` is its largest part of the node's allocatable amounts."""
    parts = [
        amount / info.allocatable(name)
        for name, amount in requested.items()
        if info.allocatable(name)
    ]
    return {
        "pod": pod.key,
        "priority": pod.priority,
        "share": round(max(parts, default=0.0), 4),
        "requests": {name: texts.amount(amount, name) for name, amount in requested.items()},
    }
