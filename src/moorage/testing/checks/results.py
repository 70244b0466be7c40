"""What a plugin returns: allowed, repeatable, the same in all its forms, and safe to cache."""

import pickle
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from moorage.api.meta import NodeName, ObjectMeta
from moorage.api.node import Node, NodeSpec
from moorage.api.pod import Pod, PodSpec, PodStatus
from moorage.api.server_requests import Request
from moorage.framework import invoke
from moorage.framework.cluster import Cluster
from moorage.framework.invoke import PluginMethod
from moorage.framework.points import BEST, Depends, Plugin
from moorage.framework.status import SUCCESS, Status
from moorage.nodes.groups import Groups, RowGroups
from moorage.nodes.table import NodeTable
from moorage.testing import strategies
from moorage.testing.checks.examples import Example
from moorage.testing.cycle import Answers, Form, PluginCycle, active_rows, allow


def check_same(one: Answers, other: Answers, complaint: str) -> None:
    """Complain if two sets of answers differ."""
    for what in Answers._fields:
        before, after = getattr(one, what), getattr(other, what)
        assert before == after, f"{complaint}\n  {what}: {shown(before)}\n  then: {shown(after)}"


def shown(thing: Any) -> str:
    """A status, a pod or a node in one line."""
    if isinstance(thing, Status):
        return f"{thing.code.label} {list(thing.reasons)}"
    return msgspec.json.encode(thing).decode()


# The two forms


def check_twins(plugin: Plugin, pod: Pod, cluster: Cluster | NodeTable) -> None:
    """Prove that the per-node form and the whole-cluster form agree for one pod and cluster."""
    cycle = PluginCycle(plugin, pod, cluster)
    rows = active_rows(cycle.table)
    slices = [rows, rows[::-1], rows[::2], rows[:1], []]
    if cycle.filters:
        _compare_forms(cycle, "filter", cycle.statuses, slices)
    if cycle.scores:
        _compare_forms(cycle, "score", cycle.raw, slices)
    if hasattr(plugin, "group_keys"):
        _compare_groups(cycle, rows)


def _compare_groups(cycle: PluginCycle, rows: list[int]) -> None:
    """Prove that the form for groups of nodes agrees with the per-node form."""
    plugin, state, pod = cycle.plugin, cycle.state, cycle.pod
    keys = invoke.group_keys(PluginMethod(plugin, "group_keys"), state, pod)
    if keys is None or not rows:
        return
    group_of = RowGroups(keys, cycle.table)
    numbers, sizes = np.unique(group_of.group_of[rows], return_counts=True)
    groups = Groups(group_of, numbers.tolist(), sizes.tolist())
    at = [groups.at[group] for group in group_of.group_of[rows].tolist()]
    if cycle.filters and hasattr(plugin, "filter_groups"):
        fits = invoke.filter_groups(PluginMethod(plugin, "filter_groups"), state, pod, groups)
        per_node = [status.is_success for status in cycle.statuses(rows, cycle.forms("filter")[0])]
        _same_by_group(cycle, "filter", per_node, [fits[i] for i in at])
    if hasattr(plugin, "score_groups"):
        scores = invoke.score_groups(PluginMethod(plugin, "score_groups"), state, pod, groups)
        by_group = None if scores is None else [scores[i] for i in at]
        raw = cycle.raw(rows, cycle.forms("score")[0]) if cycle.scores else None
        _same_by_group(cycle, "score", raw, by_group)


def _same_by_group(cycle: PluginCycle, point: str, per_node: Any, by_group: Any) -> None:
    assert per_node == by_group, (
        f"{point} says {per_node}, {point}_groups says {by_group}; they have to agree"
        f"\n  pod:  {shown(cycle.pod)}"
    )


def _compare_forms(
    cycle: PluginCycle,
    point: str,
    ask: Callable[[list[int], Form], list[Any]],
    slices: Iterable[list[int]],
) -> None:
    first, *others = cycle.forms(point)
    for rows in slices:
        expected = ask(rows, first)
        for form in others:
            for row, one, other in zip(rows, expected, ask(rows, form), strict=True):
                assert one == other, (
                    f"{first.value.format(point)} says {shown(one)}, "
                    f"{form.value.format(point)} says {shown(other)}; they have to agree"
                    f"\n  pod:  {shown(cycle.pod)}"
                    f"\n  node: {shown(cycle.table.nodes[row])}"
                )


# Every point


def check_scores(cycle: PluginCycle, said: Answers) -> None:
    """Normalised scores stay in their bounds."""
    raw = list(said.raw.values())
    scores = cycle.normalized(raw)
    assert all(0 <= score <= BEST for score in scores), (
        f"scores must be 0 to {BEST}, once normalised; {raw} became {scores}"
        f"\n  pod:  {shown(cycle.pod)}"
    )


def check_repeats(plugin: Plugin, example: Example, table: NodeTable, said: Answers) -> None:
    """Answers follow from arguments alone."""
    again = PluginCycle(plugin, example.pod, table).answers()
    check_same(
        said, again, "asked twice, it answers differently; answers are to follow from arguments"
    )
    afresh = PluginCycle(_copy(plugin), example.pod, example.table()).answers()
    check_same(
        said,
        afresh,
        "a copy of it answers differently on an equal table; it must not remember anything "
        "between pods, nor write into the table's arrays",
    )


def check_other_points(plugin: Plugin, example: Example) -> None:
    """The points that look at no node, or at the one that has been picked."""
    plugin = _copy(plugin)  # Who reserves may well remember it.
    cycle = PluginCycle(plugin, example.pod, example.table())
    pod, node = example.pod, NodeName(example.nodes[0].name)
    if hasattr(plugin, "pre_enqueue"):
        allow("pre_enqueue", plugin.pre_enqueue(pod))
    if hasattr(plugin, "queue_sort"):
        # Raises where two keys cannot be compared.
        sorted([plugin.queue_sort(pod, 1.0), plugin.queue_sort(example.other, 2.0)])
    if not cycle.status(cycle.table.row_of[node]).is_success:
        return
    for method in ("reserve", "permit", "bind"):
        ask = getattr(plugin, method, None)
        said = SUCCESS if ask is None else ask(cycle.state, pod, node)
        if not (method == "bind" and isinstance(said, Request)):
            allow(method, said)


def _copy(plugin: Plugin) -> Plugin:
    copied: Plugin = pickle.loads(pickle.dumps(plugin))
    return copied


def check_optional_methods(plugin: Plugin, example: Example) -> None:
    """Methods that save work return what the framework can use, and agree with the others."""
    cycle = PluginCycle(plugin, example.pod, example.table())
    state, pod = cycle.state, example.pod
    if hasattr(plugin, "prepare"):
        plugin.prepare(state.template)
    if hasattr(plugin, "nodes_key"):
        _check_hashable("nodes_key", plugin.nodes_key(pod, cycle.table))
    if hasattr(plugin, "skip_key"):
        _check_hashable("skip_key", plugin.skip_key(state, pod))
    if hasattr(plugin, "filter_changes") and cycle.filters:
        _, changed = invoke.filter_changes(PluginMethod(plugin, "filter_changes"), state, pod, None)
        assert changed is None or all(0 <= row < len(cycle.table) for row in changed.tolist()), (
            f"filter_changes must return rows of the table, or None, not {changed!r}"
        )


def _check_hashable(method: str, value: Hashable) -> None:
    try:
        hash(value)
    except TypeError:
        raise AssertionError(
            f"`{method}` must return something hashable, as a tuple of values, not {value!r}"
        ) from None


# `reads` and `depends`


def check_reads(plugin: Plugin, example: Example, table: NodeTable, said: Answers) -> None:
    """Pods that are the same to `reads` get the same answers."""
    read = _read(plugin, example.pod)
    for field, variant in _variants(example.pod, example.other):
        if _read(plugin, variant) == read:
            check_same(
                said,
                PluginCycle(plugin, variant, table).answers(),
                f"two pods that are the same to `reads` and differ in {field} get different "
                f"answers; add what it depends on to `reads`\n  pod:  {shown(example.pod)}"
                f"\n  and:  {shown(variant)}",
            )


def _read(plugin: Plugin, pod: Pod) -> Hashable:
    if not hasattr(plugin, "reads"):
        return msgspec.msgpack.encode((replace(pod.metadata, name="", uid=""), pod.spec))
    read: Hashable = plugin.reads(pod)
    _check_hashable("reads", read)
    return read


def _variants(pod: Pod, other: Pod) -> Iterator[tuple[str, Pod]]:
    """The pod with one thing at a time as another pod has it."""
    for field in PodSpec.__struct_fields__:
        changed = {field: getattr(other.spec, field)}
        yield f"spec.{field}", replace(pod, spec=replace(pod.spec, **changed))
    meta = other.metadata
    for field in ("namespace", "labels", "annotations"):
        changed = {field: getattr(meta, field)}
        yield f"metadata.{field}", replace(pod, metadata=replace(pod.metadata, **changed))
    named = replace(pod.metadata, name="another", uid="another")
    yield "name and UID", replace(pod, metadata=named)
    yield "status", replace(pod, status=PodStatus(phase="Pending", nominated_node_name="n1"))


def _without_labels(node: Node) -> Node:
    """A node of the same size without labels and taints."""
    return replace(node, metadata=ObjectMeta(name=node.name, uid=node.uid), spec=NodeSpec())


def check_depends(
    plugin: Plugin, depends: Depends, example: Example, another: Example, said: Answers
) -> None:
    """Answers change with nothing but what `depends` admits."""
    if depends is Depends.ANYTHING:
        return
    # The order of rows and the time of day never matter.
    nodes, running, changes = list(reversed(example.nodes)), example.running, "rows and time"
    names = {node.name for node in nodes}
    if depends in (Depends.NODE, Depends.RESOURCES, Depends.USAGE):
        nodes += [node for node in another.nodes if node.name not in names]
        running = running + [pod for pod in another.running if pod.node_name not in names]
        changes += ", other nodes and their pods"
    if depends is Depends.RESOURCES:
        nodes = [_without_labels(node) for node in nodes]
        changes += ", labels and taints"
    if depends in (Depends.NODE, Depends.NODES):
        running = another.running
        changes += ", all pods on nodes"
    cycle = PluginCycle(plugin, example.pod, strategies.worn_table(nodes, running), now=1000.0)
    complaint = f"`depends` is {depends.name}, but answers changed with {changes}; widen it"
    check_same(said, cycle.answers().of(names), complaint)
    if depends is not Depends.PLACEMENTS and cycle.scores:
        cycle.scores = cycle.pre_score(np.zeros_like(cycle.table.active_rows))
        complaint = f"with `depends` {depends.name}, pre_score must not look at `feasible`"
        check_same(said, cycle.answers().of(names), complaint)
