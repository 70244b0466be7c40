"""Run a plugin on one node, or prove that it keeps the contract of `moorage.framework.points`.

    def test_too_dirty():
        pod, node = make_pod(labels={LABEL: 200}), make_node(labels={LABEL: 201})
        assert run_plugin(CarbonAware(), pod, node).status == TOO_DIRTY

    def test_conforms():
        check_plugin(CarbonAware())

Both need nothing but Moorage itself. What fails is an AssertionError that says what to change.
"""

import inspect
import pickle
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from moorage.api.meta import KubeObject, NodeName
from moorage.api.node import Node
from moorage.api.pod import Pod, PodSpec, PodStatus
from moorage.framework import events, hints, points
from moorage.framework.cluster import Cluster
from moorage.framework.effects import Request
from moorage.framework.events import Action, ClusterEvent
from moorage.framework.hints import Hint
from moorage.framework.normalizers import BEST
from moorage.framework.points import Depends, Plugin
from moorage.framework.status import SUCCESS, Status
from moorage.nodes.columns import Column
from moorage.nodes.table import NodeTable
from moorage.testing import strategies
from moorage.testing.builders import make_cluster, make_table
from moorage.testing.cycle import Answers, Form, PluginCycle, active_rows, allow
from moorage.testing.strategies import Example, Examples

_PROTOCOLS = (
    points.PreEnqueue,
    points.QueueSort,
    points.PreFilter,
    points.PreFilterExtensions,
    points.Filter,
    points.FilterAll,
    points.PostFilter,
    points.PreScore,
    points.Score,
    points.ScoreAll,
    points.NormalizeScore,
    points.Reserve,
    points.Permit,
    points.PreBindPreFlight,
    points.PreBind,
    points.PreBindNext,
    points.Bind,
    points.PostBind,
    points.EventsToRegister,
)
# Method -> the names of its arguments.
SIGNATURES: Mapping[str, tuple[str, ...]] = {
    method: tuple(inspect.signature(function).parameters)[1:]
    for protocol in _PROTOCOLS
    for method, function in vars(protocol).items()
    if inspect.isfunction(function) and not method.startswith("_")
}


class Ran(NamedTuple):
    """What a plugin said of a node; scores are None where it gives none."""

    status: Status
    score: int | None
    raw: int | None


def run_plugin(
    plugin: Plugin,
    pod: Pod,
    node: Node,
    *,
    others: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    objects: Iterable[KubeObject] = (),
) -> Ran:
    """What a plugin says of a node, from pre_filter to the normalised score.

    `others` are further nodes of the cluster, `pods` run on any of them, `objects` are neither.
    The score is normalised among all these nodes and given even where the filter refuses, so that
    one example shows both.
    """
    cluster = make_cluster([node, *others], pods, objects)
    cycle, table = PluginCycle(plugin, pod, cluster), cluster.table
    row = table.row_of[node.name]
    if not cycle.scores:
        return Ran(cycle.status(row), None, None)
    rows = active_rows(table)
    raw = cycle.raw(rows, cycle.forms("score")[0])
    here = rows.index(row)
    return Ran(cycle.status(row), cycle.normalized(raw)[here], raw[here])


def check_plugin(
    plugin: Plugin,
    *,
    pods: Sequence[Pod] | None = None,
    nodes: Sequence[Node] | None = None,
    examples: int = 50,
) -> None:
    """Prove, as far as random examples can, that a plugin keeps its contract.

    That is: its methods take the right arguments and return what their points allow; its two
    forms agree, for all rows and for some; it is pure and repeatable; normalised scores are
    integers from 0 to 100; it can be pickled; `reads` and `depends` are honest; and no hint turns
    down a change of a node that cures the plugin's refusal.

    Pods and nodes are random, with values for those labels and annotations that the plugin turns
    out to look at. If it looks at something less usual, hand in `pods` and `nodes` to draw from.
    """
    _check_shape(plugin)
    drawn = Examples(pods, nodes)
    drawn.learn(partial(_look, plugin))
    for seed in range(examples):
        rng = Random(seed)
        try:
            _check_example(plugin, drawn.draw(rng), drawn.draw(rng))
        except AssertionError as broken:
            raise AssertionError(f"{plugin.name}, example {seed}: {broken}") from broken
        except Exception as trouble:
            raise AssertionError(
                f"{plugin.name}, example {seed}: raised {trouble!r} for a pod and nodes that an "
                "API server accepts; return a Status, or cope with what is missing"
            ) from trouble


def check_twins(plugin: Plugin, pod: Pod, cluster: Cluster | NodeTable) -> None:
    """Prove that the per-node form and the whole-cluster form agree for one pod and cluster."""
    cycle = PluginCycle(plugin, pod, cluster)
    rows = active_rows(cycle.table)
    slices = [rows, rows[::-1], rows[::2], rows[:1], []]
    if cycle.filters:
        _compare_forms(cycle, "filter", cycle.statuses, slices)
    if cycle.scores:
        _compare_forms(cycle, "score", cycle.raw, slices)


def _look(plugin: Plugin, example: Example) -> None:
    with suppress(Exception):  # Trouble is reported when examples are checked.
        PluginCycle(plugin, example.pod, example.table()).answers()


# Shape: what can be said without an example


def _check_shape(plugin: Plugin) -> None:
    name = getattr(plugin, "name", None)
    assert isinstance(name, str), f"{type(plugin).__name__} needs a class attribute `name`, a text"
    assert name, f"{type(plugin).__name__}.name must not be empty"
    _check_methods(plugin)
    _check_attributes(plugin)
    _check_pickles(plugin, name)
    for event, hint in _registered(plugin).items():
        assert isinstance(event, ClusterEvent), (
            f"{name}.events_to_register must map ClusterEvents to hints, not {event!r}"
        )
        if hint is not None:
            _check_arguments(f"the hint of {name} for {event.label}", hint, ("pod", "old", "new"))
            _check_pickles(hint, f"the hint of {name} for {event.label}")


def _check_methods(plugin: Plugin) -> None:
    squeezed = {method.replace("_", ""): method for method in SIGNATURES}
    for attribute in dir(plugin):
        if attribute in SIGNATURES:
            method = getattr(plugin, attribute)
            if method is not None:  # None gives an inherited method up.
                _check_arguments(f"{plugin.name}.{attribute}", method, SIGNATURES[attribute])
        elif (meant := squeezed.get(attribute.replace("_", "").lower())) is not None:
            raise AssertionError(f"{plugin.name}.{attribute} is never called; call it {meant}")
    assert any(points.implements(plugin, point) for point in points.METHODS), (
        f"{plugin.name} has no method of any extension point; there are "
        + ", ".join(points.METHODS)
    )


def _check_arguments(what: str, function: Callable[..., Any], arguments: tuple[str, ...]) -> None:
    signature = inspect.signature(function)
    try:
        signature.bind(*arguments)
    except TypeError:
        raise AssertionError(
            f"{what} must take ({', '.join(arguments)}); it takes {signature}"
        ) from None


def _check_attributes(plugin: Plugin) -> None:
    depends = getattr(plugin, "depends", None)
    assert depends is None or isinstance(depends, Depends), (
        f"{plugin.name}.depends must be one of mp.Depends, not {depends!r}"
    )
    for column in getattr(plugin, "columns", ()):
        assert isinstance(column, Column), (
            f"{plugin.name}.columns must be a tuple of mp.Column; {column!r} is none"
        )
    if hasattr(plugin, "normalizer"):
        assert not hasattr(plugin, "normalize_score"), (
            f"{plugin.name} has a normalizer and normalize_score; keep one of them"
        )
        for method in ("summarize", "apply"):
            assert callable(getattr(plugin.normalizer, method, None)), (
                f"{plugin.name}.normalizer has no method {method}; see mp.Normalizer"
            )


def _check_pickles(thing: object, what: str) -> None:
    try:
        pickle.loads(pickle.dumps(thing))
    except Exception as trouble:
        raise AssertionError(
            f"{what} cannot be pickled ({trouble}); keep lambdas, locks and open files out of it, "
            "and define classes and functions at the top of a module"
        ) from trouble


def _registered(plugin: Plugin) -> hints.Events:
    return plugin.events_to_register() if isinstance(plugin, points.EventsToRegister) else {}


# Examples: what has to hold for each of them


def _check_example(plugin: Plugin, example: Example, another: Example) -> None:
    content = example.content()
    pod, table = example.pod, example.table()
    check_twins(plugin, pod, table)
    cycle = PluginCycle(plugin, pod, table)
    said = cycle.answers()
    assert example.content() == content, (
        "a pod or a node was modified; make a new one with msgspec.structs.replace"
    )
    if cycle.scores:
        _check_scores(cycle, said)
    _check_repeats(plugin, example, table, said)
    _check_other_points(plugin, example)
    _check_hints(plugin, example)
    if isinstance(depends := getattr(plugin, "depends", None), Depends):
        _check_reads(plugin, example, table, said)
        _check_depends(plugin, depends, example, another, said)
    if depends is Depends.NODE:
        _check_cures(plugin, example)


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
                    f"{first.value.format(point)} says {_shown(one)}, "
                    f"{form.value.format(point)} says {_shown(other)}; they have to agree"
                    f"\n  pod:  {_shown(cycle.pod)}\n  node: {_shown(cycle.table.nodes[row])}"
                )


def _check_scores(cycle: PluginCycle, said: Answers) -> None:
    raw = list(said.raw.values())
    scores = cycle.normalized(raw)
    assert all(0 <= score <= BEST for score in scores), (
        f"scores must be 0 to {BEST}, once normalised; {raw} became {scores}"
        f"\n  pod:  {_shown(cycle.pod)}"
    )


def _check_repeats(plugin: Plugin, example: Example, table: NodeTable, said: Answers) -> None:
    again = PluginCycle(plugin, example.pod, table).answers()
    _same(said, again, "asked twice, it answers differently; answers are to follow from arguments")
    afresh = PluginCycle(_copy(plugin), example.pod, example.table()).answers()
    _same(
        said,
        afresh,
        "a copy of it answers differently on an equal table; it must not remember anything "
        "between pods, nor write into the table's arrays",
    )


def _check_other_points(plugin: Plugin, example: Example) -> None:
    """The points that look at no node, or at the one that has been picked."""
    plugin = _copy(plugin)  # Who reserves may well remember it.
    cycle = PluginCycle(plugin, example.pod, example.table())
    pod, node = example.pod, NodeName(example.nodes[0].name)
    if isinstance(plugin, points.PreEnqueue):
        allow("pre_enqueue", plugin.pre_enqueue(pod))
    if isinstance(plugin, points.QueueSort):
        # Raises where two keys cannot be compared.
        sorted([plugin.queue_sort(pod, 1.0), plugin.queue_sort(example.other, 2.0)])
    if not cycle.status(cycle.table.row_of[node]).is_success:
        return
    for method in ("reserve", "permit", "bind"):
        ask = getattr(plugin, method, None)
        said = SUCCESS if ask is None else ask(cycle.state, pod, node)
        if not (method == "bind" and isinstance(said, Request)):
            allow(method, said)


def _check_reads(plugin: Plugin, example: Example, table: NodeTable, said: Answers) -> None:
    read = _read(plugin, example.pod)
    for field, variant in _variants(example.pod, example.other):
        if _read(plugin, variant) == read:
            _same(
                said,
                PluginCycle(plugin, variant, table).answers(),
                f"two pods that are the same to `reads` and differ in {field} get different "
                f"answers; add what it depends on to `reads`\n  pod:  {_shown(example.pod)}"
                f"\n  and:  {_shown(variant)}",
            )


def _read(plugin: Plugin, pod: Pod) -> Hashable:
    if not hasattr(plugin, "reads"):
        return msgspec.msgpack.encode((replace(pod.metadata, name="", uid=""), pod.spec))
    read: Hashable = plugin.reads(pod)
    try:
        hash(read)
    except TypeError:
        raise AssertionError(
            f"`reads` must return something hashable, as a tuple of values, not {read!r}"
        ) from None
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


def _check_depends(
    plugin: Plugin, depends: Depends, example: Example, another: Example, said: Answers
) -> None:
    if depends is Depends.ANYTHING:
        return
    # The order of rows and the time of day never matter.
    nodes, running, changes = list(reversed(example.nodes)), example.running, "rows and time"
    names = {node.name for node in nodes}
    if depends in (Depends.NODE, Depends.USAGE):
        nodes += [node for node in another.nodes if node.name not in names]
        running = running + [pod for pod in another.running if pod.node_name not in names]
        changes += ", other nodes and their pods"
    if depends in (Depends.NODE, Depends.NODES):
        running = another.running
        changes += ", all pods on nodes"
    cycle = PluginCycle(plugin, example.pod, strategies.worn_table(nodes, running), now=1000.0)
    complaint = f"`depends` is {depends.name}, but answers changed with {changes}; widen it"
    _same(said, cycle.answers().of(names), complaint)
    if depends is not Depends.PLACEMENTS and cycle.scores:
        cycle.scores = cycle.pre_score(np.zeros_like(cycle.table.active_rows))
        complaint = f"with `depends` {depends.name}, pre_score must not look at `feasible`"
        _same(said, cycle.answers().of(names), complaint)


def _check_hints(plugin: Plugin, example: Example) -> None:
    versions = {
        events.NODE: _two_versions(example),
        events.POD: (example.other, example.pod),
    }
    for event, hint in _registered(plugin).items():
        if hint is None or event.resource not in versions:
            continue
        before, after = versions[event.resource]
        if event.action & Action.ADD:
            _allow_hint(event, hint(example.pod, None, after))
        if event.action & Action.DELETE:
            _allow_hint(event, hint(example.pod, before, None))
        if event.action & Action.UPDATE:
            _allow_hint(event, hint(example.pod, before, after))


def _allow_hint(event: ClusterEvent, said: object) -> None:
    assert isinstance(said, Hint), (
        f"a hint must return mp.Hint.QUEUE or mp.Hint.QUEUE_SKIP; for {event.label} it is {said!r}"
    )


def _check_cures(plugin: Plugin, example: Example) -> None:
    """A change that makes a node fit must not be turned down: the pod would wait forever."""
    if not isinstance(plugin, points.EventsToRegister):
        return  # It is told of everything.
    heard = hints.HintMap({plugin.name: plugin.events_to_register()})
    pod, (old, other) = example.pod, _two_versions(example)
    if _fits(plugin, pod, old):
        return
    for field, new in _node_variants(old, other):
        changed = events.node_update(old, new)
        if changed and _fits(plugin, pod, new):
            _check_heard(heard, changed, (pod, old, new), f"a change of {field}")
    if _fits(plugin, pod, other):
        _check_heard(heard, [ClusterEvent.NODE_ADD], (pod, None, other), "a new node")


def _check_heard(
    heard: hints.HintMap,
    changed: list[ClusterEvent],
    versions: tuple[Pod, Node | None, Node],
    what: str,
) -> None:
    registrations = [found for event in changed for found in heard.covering(event)]
    assert any(found.hint(*versions) is Hint.QUEUE for found in registrations), (
        f"{what} makes the node fit, but no hint for {' or '.join(e.label for e in changed)} says "
        f"QUEUE: the pod would never be tried again\n  pod:  {_shown(versions[0])}"
        f"\n  old:  {_shown(versions[1])}\n  new:  {_shown(versions[2])}"
    )


def _fits(plugin: Plugin, pod: Pod, node: Node) -> bool:
    table = make_table([node])
    return PluginCycle(plugin, pod, table).status(table.row_of[node.name]).is_success


def _two_versions(example: Example) -> tuple[Node, Node]:
    old, other = example.nodes[0], example.nodes[-1]
    return old, replace(other, metadata=replace(other.metadata, name=old.name))


def _node_variants(node: Node, other: Node) -> Iterator[tuple[str, Node]]:
    """The node with one thing at a time as another node has it."""
    for part in ("metadata", "spec", "status"):
        mine, its = getattr(node, part), getattr(other, part)
        for field in type(mine).__struct_fields__:
            changed = replace(mine, **{field: getattr(its, field)})
            yield f"{part}.{field}", replace(node, **{part: changed})


def _same(one: Answers, other: Answers, complaint: str) -> None:
    for what in Answers._fields:
        before, after = getattr(one, what), getattr(other, what)
        assert before == after, f"{complaint}\n  {what}: {_shown(before)}\n  then: {_shown(after)}"


def _copy(plugin: Plugin) -> Plugin:
    copied: Plugin = pickle.loads(pickle.dumps(plugin))
    return copied


def _shown(thing: Any) -> str:
    if isinstance(thing, Status):
        return f"{thing.code.label} {list(thing.reasons)}"
    return msgspec.json.encode(thing).decode()
