"""A queue_sort plugin whose keys do not compare: no pod is lost, and the journal has one fact."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.heap import comparable
from moorage.core.journal import MixedKeys
from moorage.framework.status import SUCCESS, unschedulable
from moorage.testing import make_node, make_pod

from .conftest import Machine


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param([-1, 0.5, True, 2], id="numbers of any kind"),
        pytest.param([7, "7", b"7", (7,), None], id="numbers, text, bytes, several, None"),
        pytest.param([1, math.nan], id="no number"),
        pytest.param([(1, "b"), (1, None), (2, "a")], id="an item that is missing"),
        pytest.param([(1,), (1, 0), (1, 0, "x"), (1, "0")], id="a key that has more"),
        pytest.param([[1], [2], [None]], id="lists"),
        pytest.param([((0, "b"), 1), ((1, 2), 0), ((1, "a"), 0)], id="tuples in tuples"),
        pytest.param([np.int64(3), 4, {"a": 1}], id="what knows no order"),
        pytest.param([0, 1j], id="numbers without an order"),
    ],
)
def test_order_of_keys(keys):
    backwards = keys[::-1]
    assert sorted(backwards, key=comparable) == keys


def test_keys_without_an_order_keep_their_sequence():
    keys = [None, {"a"}, object(), math.nan]
    assert sorted(keys, key=comparable) == keys


PLAIN = st.integers() | st.floats(allow_nan=False)


@given(
    st.lists(PLAIN)
    | st.lists(st.text())
    | st.lists(st.tuples(PLAIN, st.text()))
    | st.lists(st.lists(PLAIN).map(tuple))
)
def test_keys_that_compare_keep_their_order(keys):
    assert sorted(keys, key=comparable) == sorted(keys)


class Ranks:
    """Sorts pods by what the test says."""

    name = "Ranks"
    keys = {}  # noqa: RUF012  # not pickled

    def queue_sort(self, pod, queued_at):
        return self.keys[pod.name]


class Partitions(Ranks):
    """The same; all pods are in one partition."""

    name = "Partitions"

    def queue_path(self, pod):
        return ("all",)

    def queue_path_key(self, path):
        return 0

    def queue_path_changes(self):
        return ()


class Picky:
    """Rejects every pod until the test lets them in."""

    name = "Picky"

    def filter(self, state, pod, node):
        return SUCCESS if "open" in node.labels else unschedulable("shut")


def machine(monkeypatch, keys, *plugins, sorts=Ranks):
    monkeypatch.setattr(Ranks, "keys", keys)
    enabled = [{"name": plugin.name} for plugin in (sorts, *plugins)] + [{"name": "DefaultBinder"}]
    multi_point = {"disabled": [{"name": "*"}], "enabled": enabled}
    profiles = [{"plugins": {"multiPoint": multi_point}}]
    return Machine(sorts, *plugins, nodes=["n1"], profiles=profiles)


def tried(run):
    """The pods in the order in which they are tried."""
    story = []
    while run.scheduler.has_work:
        run.schedule_one()
        story.append(list(run.scheduler.journal)[-1].pod.removeprefix("default/"))
    return story


def mixed_key_facts(run):
    return [fact for fact in run.scheduler.journal if isinstance(fact, MixedKeys)]


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        pytest.param({"a": "x", "b": 2, "c": 1, "d": "w"}, "cbda", id="text and numbers"),
        pytest.param({"a": None, "b": 2, "c": 1}, "cba", id="the first has none"),
        pytest.param({"a": 2, "b": 1, "c": None}, "bac", id="the last has none"),
        pytest.param(
            {"a": (1, None), "b": (0, None), "c": (1, "z"), "d": (0, "y")},
            "dbca",
            id="a part of it is missing: the rest counts",
        ),
        pytest.param({"a": np.array([2, 1]), "b": 1, "c": 0}, "cba", id="an array"),
        pytest.param(
            {"a": (1, "x"), "b": (2, "a"), "c": (1, 5)}, "cab", id="compared when they leave"
        ),
    ],
)
@pytest.mark.parametrize("sorts", [Ranks, Partitions])
def test_every_pod_is_tried(monkeypatch, keys, order, sorts):
    run = machine(monkeypatch, keys, sorts=sorts)
    run.add(*map(make_pod, keys))
    assert "".join(tried(run)) == order
    assert len(mixed_key_facts(run)) == 1


@pytest.mark.parametrize("sorts", [Ranks, Partitions])
def test_pods_that_come_later(monkeypatch, sorts):
    run = machine(monkeypatch, {"a": 5, "b": "x", "c": 1, "d": None, "e": "w"}, sorts=sorts)
    run.add(*map(make_pod, "ab"))
    assert len(mixed_key_facts(run)) == 1
    run.add(*map(make_pod, "cde"))
    assert "".join(tried(run)) == "caebd"
    assert len(mixed_key_facts(run)) == 1


def test_what_the_journal_says(monkeypatch):
    run = machine(monkeypatch, {"a": "x", "b": 1})
    run.now = 3.0
    run.add(*map(make_pod, "ab"))
    (fact,) = mixed_key_facts(run)
    assert (fact.at, fact.plugin) == (3.0, "Ranks")
    assert fact.message == (
        'queue_sort of plugin "Ranks" gave keys that cannot be compared with each other: '
        "'<' not supported between instances of 'int' and 'str'; "
        "numbers go first, then text, and None last"
    )


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        pytest.param({"a": (1, "z"), "b": (0,), "c": (1, "y")}, "bca", id="of any length"),
        pytest.param({"a": None, "b": None, "c": None}, "abc", id="no pod has one"),
    ],
)
def test_keys_that_compare_are_left_alone(monkeypatch, keys, order):
    run = machine(monkeypatch, keys)
    run.add(*map(make_pod, keys))
    assert "".join(tried(run)) == order
    assert mixed_key_facts(run) == []


@pytest.mark.parametrize("sorts", [Ranks, Partitions])
def test_pods_that_back_off(monkeypatch, sorts):
    run = machine(monkeypatch, {"a": "x", "b": 1, "c": None}, Picky, sorts=sorts)
    for name in "abc":  # One by one: they meet in the back-off only.
        run.schedule(make_pod(name))
        assert run.scheduler.queue.where(f"default/{name}") == "unschedulable"
    run.add(make_node("n2", labels={"open": "yes"}))
    assert run.scheduler.queue.counts()["backoff"] == 3
    assert "".join(tried(run)) == "bac"
    assert len(mixed_key_facts(run)) == 1


@pytest.mark.parametrize("sorts", [Ranks, Partitions])
def test_active_pods_whose_keys_are_mixed_beside_pods_that_back_off(monkeypatch, sorts):
    run = machine(monkeypatch, {"a": 5, "b": 7, "c": "x", "d": 6, "e": 1}, Picky, sorts=sorts)
    run.schedule(*map(make_pod, "ab"))
    run.update(make_node("n1", labels={"other": "yes"}))  # They back off.
    run.add(*map(make_pod, "cde"))
    for _ in "cde":
        run.schedule_one()
    run.add(make_node("n2", labels={"open": "yes"}))
    assert "".join(tried(run)) == "eadbc"
    assert len(mixed_key_facts(run)) == 1


def test_a_pod_whose_key_changes(monkeypatch):
    keys = {"a": 1, "b": 2, "c": 3}
    run = machine(monkeypatch, keys)
    run.add(*map(make_pod, "abc"))
    keys["a"] = "late"
    run.update(make_pod("a", labels={"changed": "yes"}))
    assert "".join(tried(run)) == "bca"


def test_a_pickled_queue_goes_on_as_the_first(monkeypatch):
    run = machine(monkeypatch, {"a": "x", "b": 1, "c": 0})
    run.add(*map(make_pod, "ab"))
    copy = pickle.loads(pickle.dumps(run))
    for each in (run, copy):
        each.add(make_pod("c"))
        assert "".join(tried(each)) == "cba"
