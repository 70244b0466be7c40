"""A plugin that raises or returns nonsense for a pod costs that pod only, at every point.

One simulation for each method of the contract: every hostile pod says in a label what the method
does for it. The run ends, invariants hold, all other pods are placed, `explain` answers, and the
message of a pod that is left pending names the plugin, with file and line where it raised.
"""

import math

import numpy as np
import pytest
from tests.group_builders import group, node, pod, settings
from tests.queue_builders import queue

from moorage import Simulation
from moorage import plugin as mp
from moorage.api.pod import Pod
from moorage.errors import ConfigError, InvariantError
from moorage.explaining.dry_run import DryRun
from moorage.framework.points import METHODS
from moorage.sim.outcomes import why_pending

DOES = "does"


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("it has no text")


class Stop(BaseException):
    """Not an Exception, as a CancelledError."""


class Odd:
    """An object that does nothing that is asked of it."""

    def _refuse(self, *args, **named):
        raise ValueError("no")

    __repr__ = __eq__ = __hash__ = __bool__ = __int__ = __float__ = __len__ = __iter__ = _refuse
    __array__ = __index__ = _refuse


def raises(raised):
    def act(*args):
        raise raised

    return act


def broken_status(code):
    raise ValueError("no status")


def verdicts(**given):
    """Verdicts on all rows; functions are called with the number of rows."""

    def act(*args):
        rows = len(args[-1]) if hasattr(args[-1], "active") else 3
        made = {name: v(rows) if name != "status_of" else v for name, v in given.items()}
        return mp.Verdicts(**made)

    return act


def filled(value, dtype=None):
    """An array with one value for each row, or feasible row."""

    def act(*args):
        return np.full(len(args[-1]) if hasattr(args[-1], "__len__") else 3, value, dtype=dtype)

    return act


def of_groups(value):
    """A list with one value for each group."""
    return lambda state, pod, groups: [value] * len(groups.numbers)


def status_for_all(status):
    return verdicts(codes=lambda rows: np.ones(rows, dtype=int), status_of=lambda code: status)


RAISING = {
    "ValueError": raises(ValueError("broken")),
    "KeyError": raises(KeyError("key")),
    "StopIteration": raises(StopIteration()),
    "SystemExit": raises(SystemExit(3)),
    "GeneratorExit": raises(GeneratorExit()),
    "BaseException": raises(Stop("stop")),
    "InvariantError": raises(InvariantError("not one of ours")),
    "ConfigError": raises(ConfigError(["not one of ours"])),
    "no text": raises(Unprintable()),
    "a format": raises(ValueError("{plugin} {0} %s")),
    "a lone surrogate": raises(ValueError("\ud800")),
    "recursion": raises(RecursionError("too deep")),
}
# What is wrong as the result of any method that returns something; some may be a valid key.
RETURNING = {
    "nothing": lambda *args: None,
    "text": lambda *args: "text",
    "a number": lambda *args: 7,
    "a negative number": lambda *args: -1,
    "more than 64 bits": lambda *args: 1 << 70,
    "fewer than 64 bits": lambda *args: -(1 << 70),
    "NaN": lambda *args: math.nan,
    "infinity": lambda *args: math.inf,
    "an empty tuple": lambda *args: (),
    "a tuple": lambda *args: (1, "x"),
    "a list": lambda *args: [1, None],
    "a generator": lambda *args: (each for each in "ab"),
    "a class": lambda *args: int,
    "an odd object": lambda *args: Odd(),
    "a list of odd objects": lambda *args: [Odd()],
    "NaN seconds": lambda *args: mp.wait(math.nan),
    "infinite seconds": lambda *args: mp.wait(math.inf),
    "negative seconds": lambda *args: mp.wait(-1),
    "seconds as text": lambda *args: mp.wait("1"),
    "a wait": lambda *args: mp.wait(1 << 2000),
    "an error": lambda *args: mp.Status(mp.Code.ERROR, ("broken",)),
    "no code": lambda *args: mp.Status(None),
    "a number as code": lambda *args: mp.Status(2),
    "a number as reason": lambda *args: mp.unschedulable(1),
    "a list as reason": lambda *args: mp.unschedulable(["x"]),
    "text as reasons": lambda *args: mp.Status(mp.Code.UNSCHEDULABLE, "text"),
    "a reason with a lone surrogate": lambda *args: mp.unschedulable("\ud800"),
    "text as names": lambda *args: mp.only_nodes("n0"),
    "numbers as names": lambda *args: mp.only_nodes([1, 2]),
    "a short array": lambda *args: np.zeros(1, dtype=int),
    "two dimensions": lambda *args: np.zeros((3, 3), dtype=int),
    "an array of NaN": filled(math.nan),
    "an array of infinity": filled(-math.inf),
    "an array of large floats": filled(1e300),
    "an array of large integers": filled((1 << 63) - 1),
    "an array of small integers": filled(-(1 << 63)),
    "an array of unsigned integers": filled((1 << 64) - 1, np.uint64),
    "an array of integers beyond 32 bits": filled(3_000_000_000),
    "an array of objects": filled(None),
    "an array of text": filled("50"),
    "an array of complex numbers": filled(1j),
}
MORE = {
    "filter_all": {
        "float codes": verdicts(codes=lambda n: np.full(n, 0.5), status_of=broken_status),
        "negative codes": verdicts(codes=lambda n: np.full(n, -1), status_of=broken_status),
        "codes without a status": verdicts(
            codes=lambda n: np.ones(n, dtype=int), status_of=broken_status
        ),
        "no function": verdicts(codes=lambda n: np.ones(n, dtype=int), status_of=5),
        "None as status": status_for_all(None),
        "text as status": status_for_all("text"),
        "success as status": status_for_all(mp.SUCCESS),
        "SKIP as status": status_for_all(mp.SKIP),
        "an error as status": status_for_all(mp.Status(mp.Code.ERROR, ("broken",))),
        "text as errors": verdicts(
            codes=lambda n: np.ones(n, dtype=int),
            status_of=lambda code: mp.SUCCESS,
            errors=lambda n: "text",
        ),
        "one verdict": verdicts(all_fit=lambda n: 1),
        "fewer than no verdicts": verdicts(all_fit=lambda n: -1),
        "two-dimensional": verdicts(
            fits=lambda n: np.zeros((n, 2), dtype=bool), otherwise=lambda n: mp.unschedulable("x")
        ),
    },
    "filter_changes": {
        "a negative row": lambda *args: (1, np.array([-1])),
        "a row that is not there": lambda *args: (1, np.array([999])),
        "rows as text": lambda *args: (1, "ab"),
        "a scalar": lambda *args: (1, np.array(1)),
        "NaN as row": lambda *args: (1, [math.nan]),
    },
    "group_keys": {"names": lambda *args: ("zone",), "numbers": lambda *args: (1, 2)},
    "filter_groups": {
        "None of each": of_groups(None),
        "text of each": of_groups("x"),
        "an odd object of each": of_groups(Odd()),
    },
    "score_groups": {
        "None of each": of_groups(None),
        "NaN of each": of_groups(math.nan),
        "more than 64 bits of each": of_groups(1 << 70),
        "an odd object of each": of_groups(Odd()),
    },
    "filter_copies": {"floats": filled(0.5)},
    "post_filter": {
        "no victims": lambda *args: found(victims=None),
        "names of victims": lambda *args: found(victims=("default/low-0",)),
        "text as victims": lambda *args: found(victims="low-0"),
        "itself as victim": lambda state, pod, failure: found(victims=(pod, pod)),
        "a number as node": lambda *args: found(nominated=5),
        "a node that is not there": lambda *args: found(nominated="there"),
        "no status": lambda *args: mp.PostFiltered(None, nominated="n0"),
        "numbers as requests": lambda *args: mp.PostFiltered(mp.unschedulable("x"), requests=(1,)),
        "text as candidates": lambda *args: found(candidates=("n0",)),
        "a why that raises": lambda *args: found(why=raises(ValueError("no"))),
        "a number as why": lambda *args: found(why=7),
        "numbers as rejectors": lambda *args: mp.PostFiltered(
            mp.unschedulable("x"), rejected_by=(1,)
        ),
    },
    "pre_bind": {"requests of no kind": lambda *args: (mp.Code.SUCCESS,)},
    "pre_bind_next": {
        "NaN seconds to await": lambda *args: mp.Awaiting(seconds=math.nan),
        "no seconds to await": lambda *args: mp.Awaiting(seconds=0),
        "names to await": lambda *args: mp.Awaiting(seconds=1, objects=(("ConfigMap", "a/b"),)),
        "an Event": lambda state, pod, node: (
            mp.EmitEvent(mp.PodRef.of(pod), "Normal", "R", "A", "note", "me"),
        ),
    },
    "placement_generate": {
        "no rows": lambda *args: [mp.GroupPlacement("a", None)],
        "too few rows": lambda *args: [mp.GroupPlacement("a", np.ones(1, dtype=bool))],
        "tuples": lambda cluster, group: [("a", cluster.table.active_rows)],
    },
    "placement_score": {"True": lambda *args: np.True_},
}
# Plugins may reject a pod in their own words, or say nothing at all.
MAY_REJECT = {
    "infinite seconds",
    "a wait",
    "an error",
    "None of each",
    "itself as victim",
    "a why that raises",
    "a number as why",
    "a node that is not there",
}


def found(nominated="n0", **others):
    return mp.PostFiltered(mp.SUCCESS, nominated=nominated, **others)


# Plugins whose methods are as they should be


class Decides:
    name = "Hostile"
    depends = mp.Depends.ANYTHING

    def pre_filter(self, state, pod):
        return mp.SUCCESS

    def filter(self, state, pod, node):
        return mp.SUCCESS

    def filter_all(self, state, pod, table):
        return mp.Verdicts(all_fit=len(table))

    def pre_score(self, state, pod, feasible):
        return mp.SUCCESS

    def score(self, state, pod, node):
        return 50

    def score_all(self, state, pod, table):
        return np.full(len(table), 50)


class DecidesByNode(Decides):
    depends = mp.Depends.NODE


class DecidesByResources(Decides):
    depends = mp.Depends.RESOURCES


class DecidesByUsage(Decides):
    depends = mp.Depends.USAGE


class DecidesByNodes(Decides):
    depends = mp.Depends.NODES


class Normalizes(Decides):
    def normalize_score(self, state, pod, scores):
        return scores


class DecidesByGroup(Decides):
    depends = mp.Depends.PLACEMENTS
    normalizer = mp.ByMax()

    def filter_changes(self, state, pod, since):
        return 1, np.zeros(0, dtype=int)

    def group_keys(self, state, pod):
        return (state.table.label("zone"),)

    def filter_groups(self, state, pod, groups):
        return [True] * len(groups.numbers)

    def score_groups(self, state, pod, groups):
        return [5] * len(groups.numbers)


class Accounts(Decides):
    def add_pod(self, state, pod, other, node):
        pass

    def remove_pod(self, state, pod, other, node):
        pass


class Binds:
    name = "Hostile"

    def reserve(self, state, pod, node):
        return mp.SUCCESS

    def unreserve(self, state, pod, node):
        return ()

    def permit(self, state, pod, node):
        return mp.SUCCESS

    def pre_bind(self, state, pod, node):
        return mp.Awaiting(seconds=1)

    def pre_bind_next(self, state, pod, node):
        return mp.SUCCESS

    def pre_bind_pre_flight(self, state, pod, node):
        return mp.SUCCESS

    def bind(self, state, pod, node):
        return mp.SKIP

    def post_bind(self, state, pod, node):
        pass


class FailsToBind(Binds):
    def permit(self, state, pod, node):
        return mp.unschedulable("Hostile pods stay") if DOES in pod.labels else mp.SUCCESS


class Preempts:
    name = "Hostile"

    def pre_enqueue(self, pod):
        return mp.SUCCESS

    def post_filter(self, state, pod, failure):
        wanted = (pod.spec.node_selector or {}).get("kubernetes.io/hostname", "")
        row = state.table.row_of.get(wanted)
        placed = {} if row is None else state.table.placed[row]
        lower = [each.pod for each in placed.values() if each.pod.priority < pod.priority]
        return (
            found(wanted, victims=tuple(lower)) if lower else mp.unschedulable("Hostile has none")
        )

    def preemption_started(self, pod):
        pass

    def preemption_finished(self, pod):
        pass


class PreemptsForGroups(Preempts):
    def post_filter_group(self, cluster, group, pods, trial):
        return mp.unschedulable("Hostile helps no group")


class Gangs(Decides):
    depends = mp.Depends.RESOURCES

    def filter_copies(self, state, pod, table):
        return np.full(len(table), 5)

    def placement_generate(self, cluster, group):
        zones = cluster.table.label("zone")
        rows = [zones.codes == zones.values.index(zone) for zone in "ab"]
        return [mp.GroupPlacement(zone, each) for zone, each in zip("ab", rows, strict=True)]

    def placement_score(self, cluster, group, placement, pods):
        return 5


class Sorts:
    name = "Hostile"

    def queue_sort(self, pod, queued_at):
        return queued_at


class Partitions(Sorts):
    def queue_path(self, pod):
        return ("a", pod.labels.get("app", ""))

    def queue_path_key(self, path):
        return 0

    def queue_path_changes(self):
        return ()


# Hostile ones


def told(args):
    """What a method should do, from the label of the pod, or group, that it is about."""
    for each in args:
        obj = getattr(each, "exemplar", each)
        if DOES in getattr(obj, "labels", {}):
            return obj.labels[DOES]
        if isinstance(obj, mp.PodGroup):
            return obj.metadata.labels.get(DOES, "")
    return ""


def acts_of(method):
    returning = RETURNING if METHODS[method].codes or method in RESULTS else {}
    return list({**RAISING, **returning, **MORE.get(method, {})}.items())


# Methods that return something else than a Status.
RESULTS = frozenset(
    (
        *("score", "score_all", "normalize_score", "filter_all", "filter_changes", "filter_copies"),
        *("group_keys", "filter_groups", "score_groups", "placement_generate", "placement_score"),
        *("post_filter", "post_filter_group", "unreserve", "pre_bind", "pre_bind_next", "bind"),
        *("reads", "nodes_key"),
        *("skip_key", "queue_sort", "queue_path", "explain_rejection", "explain_reservation"),
    )
)

NODES = [node(f"n{i}", cpu=64, zone="ab"[i % 2]) for i in range(4)]


def with_labels(obj, **labels):
    obj["metadata"]["labels"] = labels
    return obj


def config(name, point=""):
    """Beside the default plugins, in place of those of one point."""
    ours = {"name": name}
    plugins = {"multiPoint": {"enabled": [ours]}}
    if point:
        others = [{"name": "DefaultBinder"}] if point == "bind" else []
        plugins[point] = {"disabled": [{"name": "*"}], "enabled": [ours, *others]}
    gates = {"TopologyAwareWorkloadScheduling": True, "WorkloadAwarePreemption": True}
    return {**settings(**gates), "profiles": [{"plugins": plugins}]}


def lone(method, copies=2):
    """Hostile pods, of each template several, with others between them."""
    pods = []
    for number in range(len(acts_of(method))):
        for i in range(copies):
            label = {DOES: str(number)}
            pods.append(with_labels(pod(f"hostile-{number}-{i}", cpu="100m"), **label))
        if number % 4 == 0:
            pods.append(with_labels(pod(f"good-{number}", cpu="100m"), app=str(number % 3)))
    return [*NODES, *pods]


def each(method):
    return lone(method, copies=1)


def many(method):
    """More of each template, as only the later ones are decided by groups of rows."""
    return lone(method, copies=4)


def preempting(method):
    """A node for each hostile pod, with a pod of low priority on it."""
    objects = []
    for number in range(len(acts_of(method))):
        low = pod(f"low-{number}", cpu="2", nodeName=f"n{number}", priority=-5)
        hostile = with_labels(pod(f"hostile-{number}", priority=10), **{DOES: str(number)})
        pinned = {"kubernetes.io/hostname": f"n{number}"}
        hostile["spec"]["nodeSelector"] = pinned
        objects += [node(f"n{number}", cpu=2), low, hostile]
    objects += [node("good", cpu=2), pod("low", cpu="2", nodeName="good", priority=-5)]
    pinned = {"kubernetes.io/hostname": "good"}
    return [*objects, pod("good-0", priority=5, nodeSelector=pinned)]


def gangs(method):
    objects = [*NODES]
    for number in range(len(acts_of(method))):
        name, label = f"hostile-{number}", {DOES: str(number)}
        objects.append(with_labels(group(name, 2), **label))
        objects += [with_labels(pod(f"{name}-{i}", name, "100m"), **label) for i in range(2)]
        objects += [group(f"good-{number}", 2)]
        objects += [pod(f"good-{number}-{i}", f"good-{number}", "100m") for i in range(2)]
    return objects


def full_gangs(method):
    """Gangs that fit nowhere: only their preemption is left."""
    return [
        {**each, "spec": {**each["spec"], "nodeSelector": {"no": "where"}}}
        if each["kind"] == "Pod" and DOES in each["metadata"].get("labels", {})
        else each
        for each in gangs(method)
    ]


def hostile(base, method):
    """A plugin of which one method is hostile."""
    good, acts = getattr(base, method, None), acts_of(method)

    def run(self, *args):
        does = told(args)
        if does:
            return acts[int(does)][1](*args)
        return good(self, *args) if good else None

    # The contract looks at the parameters.
    names = ", ".join(("self", *METHODS[method].arguments))
    made = {"run": run}
    exec(compile(f"def {method}({names}): return run({names})", __file__, "exec"), made)
    return type("Hostile", (base,), {method: made[method]})


def alone(base):
    """The same without whole-cluster forms."""
    return type(f"{base.__name__}Alone", (base,), {"filter_all": None, "score_all": None})


DECIDING = (Decides, DecidesByNode, DecidesByResources, DecidesByUsage, DecidesByNodes)
BINDING = ("reserve", "permit", "pre_bind", "pre_bind_next", "pre_bind_pre_flight")


def points():
    """Plugin, hostile method, objects, the point of which it is the only plugin.

    And whether pods for which it raises are left pending; None: some of them.
    """
    for base in DECIDING:
        for method in ("pre_filter", "filter_all", "pre_score", "score_all"):
            yield base, method, lone, "", True
        for method in ("filter", "score"):
            yield alone(base), method, lone, "", True
        yield base, "reads", lone, "", base is not Decides
    yield DecidesByNodes, "nodes_key", lone, "", True
    for method in ("skip_key", "prepare", "explain_reservation"):
        yield Decides, method, lone, "", False
    yield Normalizes, "normalize_score", lone, "", True
    for method in ("filter_changes", "filter_all", "score_all"):
        yield DecidesByGroup, method, lone, "", True
    for method in ("group_keys", "filter_groups", "score_groups"):
        yield DecidesByGroup, method, many, "", None
    for method in BINDING:
        yield Binds, method, each, "", True
    yield Binds, "bind", each, "bind", True
    yield Binds, "post_bind", each, "", False
    yield FailsToBind, "unreserve", each, "", None
    yield FailsToBind, "explain_rejection", each, "", None
    yield Preempts, "pre_enqueue", each, "", True
    yield Preempts, "post_filter", preempting, "postFilter", True
    yield Preempts, "preemption_started", preempting, "postFilter", False
    yield Preempts, "preemption_finished", preempting, "postFilter", False
    for method in ("add_pod", "remove_pod"):
        yield Accounts, method, preempting, "", None
    for method in ("placement_generate", "placement_score"):
        yield Gangs, method, gangs, "placementGenerate", True
    yield PreemptsForGroups, "post_filter_group", full_gangs, "postFilter", True
    yield Gangs, "filter_copies", gangs, "placementGenerate", False
    yield Sorts, "queue_sort", each, "queueSort", False
    for method in ("queue_sort", "queue_path"):
        yield Partitions, method, each, "queueSort", False


ROWS = []
for row in points():
    name = f"{row[0].__name__}_{row[1]}"
    globals()[name] = hostile(row[0], row[1])
    ROWS.append(pytest.param(name, *row[1:], id=name))


def check(method, objects, configuration, *, costs):
    """Run it, and explain every pod."""
    sim = Simulation(objects, config=configuration, check=True)
    sim.run(until=5)
    explained = DryRun(objects, configuration)
    acts = acts_of(method)
    for each in sim.cluster.all(Pod):
        does = acts[int(each.labels[DOES])][0] if DOES in each.labels else ""
        why = "" if each.node_name else why_pending(sim.scheduler, each)
        if not each.name.startswith("hostile"):
            assert each.node_name, f"{each.name}: {why}"
        elif does in RAISING:
            assert costs is None or bool(why) == costs, f"{does}: {each.node_name}{why}"
        if why and does not in MAY_REJECT:
            assert "Hostile" in why, f"{does}: {why}"
        if costs and does in ("ValueError", "KeyError", "no text"):
            assert "(test_hostile_plugins.py:" in why, why
    for each in explained.pods:
        if each.name.startswith("hostile") and not each.name.endswith("-1"):
            str(explained.explain(each))


@pytest.mark.parametrize(("name", "method", "objects", "point", "costs"), ROWS)
def test_a_hostile_plugin_costs_its_own_pod(name, method, objects, point, costs):
    check(method, objects(method), config(f"{__name__}:{name}", point), costs=costs)


# What is not about a pod: it costs all pods that need it, or the start.


class Reads(Decides):
    """Reads a column in its filter."""

    column = None

    def filter_all(self, state, pod, table):
        return mp.Verdicts(all_fit=len(table[self.column]))


class NoNumber(Reads):
    column = mp.Column("hostile", np.int64, read=lambda node: "text")


class NoColumn(Reads):
    column = mp.Column("hostile", np.int64, read=raises(Stop("stop")))


class OddColumn(Reads):
    column = mp.Column("hostile", np.int64, read=lambda node: Odd())


class NoUsage(Reads):
    column = mp.UsageColumn("hostile", read=lambda node: 1, read_all=lambda rows: None)


class BrokenSummary(Decides):
    depends = mp.Depends.NODE

    class Broken:
        def summarize(self, feasible):
            raise Unprintable

        def apply(self, raw, summary):
            return raw

    normalizer = Broken()


class ArrayAsSummary(BrokenSummary):
    class Broken(BrokenSummary.Broken):
        def summarize(self, feasible):
            return feasible

    normalizer = Broken()


class TextAsScores(BrokenSummary):
    class Broken(BrokenSummary.Broken):
        def summarize(self, feasible):
            return 1

        def apply(self, raw, summary):
            return "50"

    normalizer = Broken()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("NoNumber", id="a column of text"),
        pytest.param("NoColumn", id="a column that raises"),
        pytest.param("OddColumn", id="a column of odd objects"),
        pytest.param("NoUsage", id="a usage column without values"),
        pytest.param("BrokenSummary", id="a normalizer that raises"),
        pytest.param("ArrayAsSummary", id="an array as summary"),
        pytest.param("TextAsScores", id="text as normalised scores"),
    ],
)
def test_without_a_pod(name):
    objects = [*NODES, pod("a"), pod("b"), pod("c", cpu="2")]
    sim = Simulation(objects, config=config(f"{__name__}:{name}"), check=True)
    sim.run(until=5)
    assert all("Hostile" in why for why in sim.pending.values()), sim.pending
    assert sim.pending
    for each in sim.cluster.all(Pod):
        str(DryRun(objects, config(f"{__name__}:{name}")).explain(each))


class Hints(Decides):
    """Rejects every pod with a label, and registers the only hint for changes of queues."""

    hint = None

    def filter(self, state, pod, node):
        return mp.unschedulable("Hostile") if pod.labels else mp.SUCCESS

    filter_all = score_all = None

    def events_to_register(self):
        return {mp.ClusterEvent.QUEUE_CHANGE: type(self).hint}


class HintRaises(Hints):
    hint = staticmethod(raises(Stop("stop")))


class HintReturnsText(Hints):
    hint = staticmethod(lambda pod, old, new: "text")


class PodsRaise(Hints):
    hint = mp.TargetedHint(lambda *args: mp.Hint.QUEUE, pods=raises(Unprintable()))


class NumbersAsPods(Hints):
    hint = mp.TargetedHint(lambda *args: mp.Hint.QUEUE, pods=lambda old, new: 7)


class TextAsPods(Hints):
    hint = mp.TargetedHint(lambda *args: mp.Hint.QUEUE, pods=lambda old, new: "default/a")


class OddAliases(Hints):
    hint = mp.TargetedHint(
        lambda *args: mp.Hint.QUEUE, pods=lambda old, new: None, aliases=lambda pod: [Odd()]
    )


@pytest.mark.parametrize(
    "name",
    ["HintRaises", "HintReturnsText", "PodsRaise", "NumbersAsPods", "TextAsPods", "OddAliases"],
)
def test_a_hostile_hint_requeues_the_pod(name):
    objects = [*NODES, with_labels(pod("a"), app="a"), pod("b")]
    sim = Simulation(objects, config=config(f"{__name__}:{name}"), check=True)
    sim.run()
    before = sim.scheduler.queue.scheduling_cycle
    sim.create([queue("q")])
    sim.run()
    assert sim.scheduler.queue.scheduling_cycle > before
    assert list(sim.pending) == ["default/a"]
    if name != "HintReturnsText":
        assert any("Hostile" in each for each in sim.scheduler.queue.hint_errors)


class NoPathKey(Partitions):
    def queue_path_key(self, path):
        raise Stop("stop")


class OddPathKey(Partitions):
    def queue_path_key(self, path):
        return [Odd(), math.nan]


class PathChangesRaise(Partitions):
    def queue_path_changes(self):
        raise Unprintable


class NumbersAsPathChanges(Partitions):
    def queue_path_changes(self):
        return 7, None, (), "ab"


class OddPathChanges(Partitions):
    def queue_path_changes(self):
        return Odd()


@pytest.mark.parametrize(
    "name",
    ["NoPathKey", "OddPathKey", "PathChangesRaise", "NumbersAsPathChanges", "OddPathChanges"],
)
def test_pods_of_a_hostile_partition_are_placed(name):
    pods = [with_labels(pod(f"p{i}"), app=str(i % 3)) for i in range(9)]
    sim = Simulation([*NODES, *pods], config=config(f"{__name__}:{name}", "queueSort"), check=True)
    sim.run()
    assert sim.pending == {}


class RaisesAtStart(Decides):
    def attach(self, cluster):
        raise Stop("no cluster")


class NamesAsEvents(Decides):
    def events_to_register(self):
        return {"Node/Add": None}


class NoHint(Decides):
    def events_to_register(self):
        return {mp.ClusterEvent.NODE_ADD: mp.Hint.QUEUE}


class EventsRaise(Decides):
    def events_to_register(self):
        raise Unprintable


class NoNormalizer(Decides):
    normalizer = "ByMax"


class NoPermission(Decides):
    permissions = ("get pods",)


class DependsRaises(Decides):
    @property
    def depends(self):
        raise Stop("no")


@pytest.mark.parametrize(
    "name",
    [
        *("RaisesAtStart", "NamesAsEvents", "NoHint", "EventsRaise", "NoNormalizer"),
        *("NoPermission", "DependsRaises"),
    ],
)
def test_a_plugin_that_cannot_start_is_an_error_of_the_configuration(name):
    with pytest.raises(ConfigError, match="Hostile|:" + name):
        Simulation(NODES, config=config(f"{__name__}:{name}"))
