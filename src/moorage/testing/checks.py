"""Run a plugin on one node, or prove that it keeps the contract of `moorage.framework.points`.

    def test_too_dirty():
        ran = run_plugin(CarbonAware(), make_pod(labels={LABEL: 200}), make_node(labels={LABEL: 201}))
        assert (ran.status, ran.score) == (TOO_DIRTY, 79)

    def test_conforms():
        check_plugin(CarbonAware())

Both need nothing but Moorage itself. What fails is an AssertionError that says what to change.
"""

import inspect
import pickle
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from moorage.api.node import Node
from moorage.api.pod import Pod, PodSpec, PodStatus
from moorage.framework import events, hints, points
from moorage.framework.points import Depends, Plugin
from moorage.framework.status import (
    REJECTED,
    SUCCESS,
    Code,
    Narrowed,
    Scores,
    Status,
    Verdicts,
    unresolvable,
)
from moorage.nodes.columns import Column
from moorage.nodes.table import NodeTable
from moorage.testing import strategies
from moorage.testing.builders import make_state, make_table

HIGHEST = 100

_REFUSALS = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
ALLOWED: Mapping[str, tuple[Code, ...]] = {
    "pre_enqueue": (Code.SUCCESS, *REJECTED),
    "pre_filter": (Code.SUCCESS, Code.SKIP, *_REFUSALS),
    "filter": (Code.SUCCESS, *REJECTED),
    "filter_all": REJECTED,  # Success is code 0 and never looked up.
    "pre_score": (Code.SUCCESS, Code.SKIP),
    "reserve": (Code.SUCCESS, *REJECTED),
    "permit": (Code.SUCCESS, Code.WAIT, *REJECTED),
    "bind": (Code.SUCCESS, Code.SKIP, *REJECTED),
}

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
    plugin: Plugin, pod: Pod, node: Node, *, others: Iterable[Node] = (), pods: Iterable[Pod] = ()
) -> Ran:
    """What a plugin says of a node, from pre_filter to the normalised score.

    `others` are further nodes of the cluster, `pods` run on any of them. The score is normalised
    among all these nodes and given even where the filter refuses, so that one example shows both.
    """
    table = make_table([node, *others], pods)
    cycle = _Cycle(plugin, pod, table)
    row = table.row_of[node.name]
    if not cycle.scores:
        return Ran(cycle.status(row), None, None)
    rows = _active(table)
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
    world = _World(plugin, pods, nodes)
    for seed in range(examples):
        rng = Random(seed)
        try:
            _check_example(plugin, world.example(rng), rng)
        except AssertionError as broken:
            raise AssertionError(f"{plugin.name}, example {seed}: {broken}") from broken
        except Exception as trouble:
            raise AssertionError(
                f"{plugin.name}, example {seed}: raised {trouble!r} for a pod and nodes that an "
                "API server accepts; return a Status, or cope with what is missing"
            ) from trouble


def check_twins(plugin: Plugin, pod: Pod, table: NodeTable) -> None:
    """Prove that the per-node form and the whole-cluster form agree for one pod and table."""
    cycle = _Cycle(plugin, pod, table)
    rows = _active(table)
    slices = [rows, rows[::-1], rows[::2], rows[:1]]
    if cycle.filters:
        _compare_forms(cycle, "filter", cycle.statuses, slices)
    if cycle.scores:
        _compare_forms(cycle, "score", cycle.raw, slices)


# Asking


class Form(Enum):
    """The ways to ask for many rows."""

    NODE = "{}"
    TABLE = "{}_all"
    SLICE = "{}_all on a slice of the table"


class _Cycle:
    """One pod's way through a single plugin, up to the scores."""

    def __init__(self, plugin: Plugin, pod: Pod, table: NodeTable, now: float = 0.0) -> None:
        self.plugin, self.pod, self.table = plugin, pod, table
        self.state = make_state(pod, table, now)
        self.found: Status | Narrowed = SUCCESS
        if isinstance(plugin, points.PreFilter):
            self.found = plugin.pre_filter(self.state, pod)
            if not isinstance(self.found, Narrowed):
                _allow(plugin, "pre_filter", self.found)
        passed = isinstance(self.found, Narrowed) or self.found.is_success
        self.filters = passed and points.implements(plugin, "filter")
        self.scores = points.implements(plugin, "score") and self.pre_score(table.active_rows)

    def pre_score(self, feasible: points.Mask) -> bool:
        """Whether the plugin is going to score."""
        if not isinstance(self.plugin, points.PreScore):
            return True
        status = self.plugin.pre_score(self.state, self.pod, feasible.copy())
        return _allow(self.plugin, "pre_score", status).is_success

    def forms(self, point: str) -> list[Form]:
        """The forms that the plugin has."""
        per_node = [Form.NODE] if hasattr(self.plugin, point) else []
        whole = [Form.TABLE, Form.SLICE] if hasattr(self.plugin, f"{point}_all") else []
        return per_node + whole

    def status(self, row: int) -> Status:
        """What becomes of a node in the end, narrowing and skipping included."""
        name = self.table.name(row)
        if isinstance(self.found, Narrowed):
            if name not in self.found.names:
                return unresolvable(f"node(s) didn't satisfy plugin(s) [{self.plugin.name}]")
        elif self.found.is_skip:
            return SUCCESS
        elif not self.found.is_success:
            return self.found
        return self.statuses([row], self.forms("filter")[0])[0] if self.filters else SUCCESS

    def statuses(self, rows: list[int], form: Form) -> list[Status]:
        """What the filter says of rows."""
        plugin = self.plugin
        if form is Form.NODE:
            assert isinstance(plugin, points.Filter)
            asked = [plugin.filter(self.state, self.pod, self.table.info(row)) for row in rows]
            return [_allow(plugin, "filter", status) for status in asked]
        assert isinstance(plugin, points.FilterAll)
        table, chosen = self._rows(rows, form)
        verdicts = plugin.filter_all(self.state, self.pod, table)
        assert isinstance(verdicts, Verdicts), f"filter_all must return Verdicts, not {verdicts!r}"
        codes = _entries("filter_all", verdicts.codes, len(table))[chosen].tolist()
        status_of = verdicts.status_of
        return [_allow(plugin, "filter_all", status_of(code)) if code else SUCCESS for code in codes]

    def raw(self, rows: list[int], form: Form) -> list[int]:
        """What the plugin scores rows, before normalising."""
        plugin = self.plugin
        if form is Form.NODE:
            assert isinstance(plugin, points.Score)
            asked = [plugin.score(self.state, self.pod, self.table.info(row)) for row in rows]
            for score in asked:
                assert type(score) is int, f"score must return an int, not {score!r}"
            return asked
        assert isinstance(plugin, points.ScoreAll)
        table, chosen = self._rows(rows, form)
        scores = plugin.score_all(self.state, self.pod, table)
        return [int(score) for score in _entries("score_all", scores, len(table))[chosen]]

    def _rows(self, rows: list[int], form: Form) -> tuple[points.Rows, Any]:
        chosen = np.array(rows, dtype=np.intp)
        return (self.table, chosen) if form is Form.TABLE else (self.table.slice(chosen), slice(None))

    def normalized(self, raw: list[int]) -> list[int]:
        """The scores that count, with these nodes being all that are feasible."""
        plugin = self.plugin
        scores: Scores = np.array(raw, dtype=np.int64)
        if isinstance(plugin, points.NormalizeScore):
            scores = plugin.normalize_score(self.state, self.pod, scores.copy())
            return [int(score) for score in _entries("normalize_score", scores, len(raw))]
        normalizer = getattr(plugin, "normalizer", None)
        if normalizer is None:
            return raw
        summary = normalizer.summarize(scores)
        singly = [int(normalizer.apply(score, summary)) for score in raw]
        together = [int(score) for score in normalizer.apply(scores, summary)]
        assert singly == together, (
            f"normalizer.apply gives {together} for an array of scores and {singly} for its "
            "elements one by one; the framework uses both ways"
        )
        return together


class Answers(NamedTuple):
    """Everything that a plugin says of a pod, by node name."""

    found: Status | Narrowed
    statuses: dict[str, Status]
    raw: dict[str, int]


def _answers(cycle: _Cycle) -> Answers:
    rows = _active(cycle.table)
    names = [cycle.table.name(row) for row in rows]
    statuses = cycle.statuses(rows, cycle.forms("filter")[0]) if cycle.filters else []
    raw = cycle.raw(rows, cycle.forms("score")[0]) if cycle.scores else []
    # Without a filter or a score there is nothing to pair the names with.
    return Answers(
        cycle.found,
        dict(zip(names, statuses, strict=False)),
        dict(zip(names, raw, strict=False)),
    )


def _active(table: NodeTable) -> list[int]:
    return [int(row) for row in np.flatnonzero(table.active_rows)]


def _entries(method: str, values: Any, rows: int) -> Any:
    assert isinstance(values, np.ndarray), f"{method} must return an array, not {values!r}"
    assert values.dtype.kind in "iu", f"{method} must return integers, not {values.dtype}"
    assert values.shape == (rows,), (
        f"{method} must return one entry per row of the table that it is given, {rows} of them, "
        f"not an array of shape {values.shape}"
    )
    return values


def _allow(plugin: Plugin, method: str, status: Status) -> Status:
    assert isinstance(status, Status), (
        f"{method} must return a Status, as mp.SUCCESS or mp.unschedulable(...), not {status!r}"
    )
    assert status.code in ALLOWED[method], (
        f"{method} must not return {status.code.label}; allowed here: "
        + ", ".join(code.label for code in ALLOWED[method])
    )
    return status


# Shape: what can be said without an example


def _check_shape(plugin: Plugin) -> None:
    name = getattr(plugin, "name", None)
    assert isinstance(name, str), f"{type(plugin).__name__} needs a class attribute `name`, a text"
    assert name, f"{type(plugin).__name__}.name must not be empty"
    _check_methods(plugin)
    _check_attributes(plugin)
    _check_pickles(plugin, name)
    for event, hint in _registered(plugin).items():
        assert isinstance(event, events.ClusterEvent), (
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


# Examples


@dataclass(slots=True)
class _Example:
    """A pod that waits, and a cluster; `other` is a second pod to compare with."""

    pod: Pod
    other: Pod
    nodes: list[Node]
    running: list[Pod]

    def table(self) -> NodeTable:
        return strategies.worn_table(self.nodes, self.running)

    def content(self) -> bytes:
        return msgspec.msgpack.encode((self.pod, self.nodes, self.running))


class _World:
    """Where examples come from."""

    def __init__(
        self, plugin: Plugin, pods: Sequence[Pod] | None, nodes: Sequence[Node] | None
    ) -> None:
        self._pods, self._nodes = pods, nodes
        self._keys: tuple[str, ...] = ()
        # Twice, because some keys are asked for only where others are present.
        for _ in range(2):
            self._keys = tuple(sorted({*self._keys, *self._asked(plugin)}))

    def example(self, rng: Random) -> _Example:
        names = rng.sample(strategies.NODE_NAMES, 6)
        nodes = self._some_nodes(rng, names)
        running = [
            self._pod(rng, f"p{i}", node=rng.choice(nodes).name) for i in range(rng.randrange(8))
        ]
        return _Example(self._incoming(rng), self._incoming(rng), nodes, running)

    def _asked(self, plugin: Plugin) -> set[str]:
        """The keys of labels and annotations that the plugin looks for."""
        asked: set[str] = set()
        for seed in range(20):
            example = self.example(Random(seed))
            example.nodes = [_watched(node, asked) for node in example.nodes]
            example.pod = _watched(example.pod, asked)
            try:
                _answers(_Cycle(plugin, example.pod, example.table()))
            except Exception:  # noqa: S112  # Trouble is reported when the example is checked.
                continue
        return asked.difference(strategies.LABEL_KEYS)

    def _some_nodes(self, rng: Random, names: list[str]) -> list[Node]:
        if self._nodes is None:
            return [self._marked(rng, strategies.random_node(rng, name)) for name in names]
        by_name = {node.name: node for node in self._nodes}
        return rng.sample(list(by_name.values()), min(len(by_name), len(names)))

    def _incoming(self, rng: Random) -> Pod:
        if self._pods is None:
            return self._marked(rng, strategies.random_incoming(rng))
        return rng.choice(self._pods)

    def _pod(self, rng: Random, name: str, node: str) -> Pod:
        """A pod that runs."""
        if self._pods is None:
            return self._marked(rng, strategies.random_pod(rng, name, node=node))
        pod = rng.choice(self._pods)
        return replace(
            pod,
            metadata=replace(pod.metadata, name=name, uid=name),
            spec=replace(pod.spec, node_name=node),
        )

    def _marked(self, rng: Random, obj: Any) -> Any:
        """The object with random values for the keys that matter to the plugin."""
        labels, annotations = dict(obj.metadata.labels), dict(obj.metadata.annotations)
        for key in self._keys:
            for pairs in (labels, annotations):
                value = rng.choice((None, *strategies.LABEL_VALUES, "150", "1000", "true"))
                if value is not None:
                    pairs[key] = value
        return replace(obj, metadata=replace(obj.metadata, labels=labels, annotations=annotations))


class _Watched(dict[str, str]):
    """A map that remembers the keys that it was asked for."""

    def __init__(self, content: Mapping[str, str], asked: set[str]) -> None:
        super().__init__(content)
        self.asked = asked

    def __getitem__(self, key: str) -> str:
        self.asked.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.asked.add(str(key))
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


def _watched(obj: Any, asked: set[str]) -> Any:
    meta = obj.metadata
    watched = replace(
        meta,
        labels=_Watched(meta.labels, asked),
        annotations=_Watched(meta.annotations, asked),
    )
    return replace(obj, metadata=watched)


def _check_example(plugin: Plugin, example: _Example, rng: Random) -> None:
    content = example.content()
    pod, table = example.pod, example.table()
    check_twins(plugin, pod, table)
    cycle = _Cycle(plugin, pod, table)
    said = _answers(cycle)
    _check_scores(cycle, said)
    _check_repeats(plugin, example, table, said)
    _check_single_points(plugin, example)
    _check_reads(plugin, example, table, said)
    _check_depends(plugin, example, rng, said)
    _check_hints(plugin, example)
    assert example.content() == content, (
        "a pod or a node was modified; make a new one with msgspec.structs.replace instead"
    )


def _compare_forms(
    cycle: _Cycle,
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
                    f"{first.value.format(point)} says {_shown(one)} and "
                    f"{form.value.format(point)} says {_shown(other)}; they have to agree"
                    f"\n  pod:  {_shown(cycle.pod)}\n  node: {_shown(cycle.table.nodes[row])}"
                )


def _check_scores(cycle: _Cycle, said: Answers) -> None:
    raw = list(said.raw.values())
    if not raw:
        return
    scores = cycle.normalized(raw)
    for score in scores:
        assert 0 <= score <= HIGHEST, (
            f"a score must be 0 to {HIGHEST}, after normalising if there is a normalizer; "
            f"{raw} became {scores}\n  pod:  {_shown(cycle.pod)}"
        )


def _check_repeats(plugin: Plugin, example: _Example, table: NodeTable, said: Answers) -> None:
    pod = example.pod
    again = _answers(_Cycle(plugin, pod, table))
    _same(said, again, "asked twice, the answers differ; they may depend on the arguments only")
    copy = pickle.loads(pickle.dumps(plugin))
    afresh = _answers(_Cycle(copy, pod, example.table()))
    _same(
        said,
        afresh,
        "a copy of the plugin answers otherwise on a copy of the table; it must not remember "
        "anything on itself, nor write into the table's arrays",
    )


def _check_single_points(plugin: Plugin, example: _Example) -> None:
    """The points that look at no node, or at one that has been picked."""
    pod, table = example.pod, example.table()
    plugin = pickle.loads(pickle.dumps(plugin))  # Who reserves may well remember it.
    state, node = make_state(pod, table), points.NodeName(example.nodes[0].name)
    if isinstance(plugin, points.PreEnqueue):
        _allow(plugin, "pre_enqueue", plugin.pre_enqueue(pod))
    if isinstance(plugin, points.QueueSort):
        keys = [plugin.queue_sort(pod, 1.0), plugin.queue_sort(example.other, 2.0)]
        assert keys == plugin_sorted(keys), "queue_sort"
    if isinstance(plugin, points.Bind):
        asked = plugin.bind(state, pod, node)
        if isinstance(asked, Status):
            _allow(plugin, "bind", asked)


def _shown(thing: Any) -> str:
    if isinstance(thing, Status):
        return f"{thing.code.label} {list(thing.reasons)}"
    return msgspec.json.encode(thing).decode()
