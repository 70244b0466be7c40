"""A correct plugin passes; each contract violation is reported with what to change."""

import math

import numpy as np
import pytest

from moorage import plugin as mp
from moorage.testing import check_plugin, make_node, make_pod, run_plugin

LABEL = "moorage.dev/carbon"
TOO_DIRTY = mp.unresolvable("node(s) had dirtier power than the pod accepts")
CEILING = mp.StateKey[float]("CarbonAware.ceiling")
FEASIBLE = mp.StateKey[int]("CarbonAware.feasible")


def grams(obj):
    try:
        return int(obj.labels[LABEL])
    except (KeyError, ValueError):
        return math.inf


GRAMS = mp.Column("carbon", np.float64, read=grams)


def hint(pod, old, new):
    cleaner = old is None or grams(new) < grams(old)
    return mp.Hint.QUEUE if cleaner else mp.Hint.QUEUE_SKIP


class CarbonAware:
    """The example of the plugin guide."""

    name = "CarbonAware"
    columns = (GRAMS,)
    depends = mp.Depends.NODE

    def pre_filter(self, state, pod):
        state[CEILING] = grams(pod)
        return mp.SKIP if state[CEILING] == math.inf else mp.SUCCESS

    def filter(self, state, pod, node):
        return mp.SUCCESS if node[GRAMS] <= state[CEILING] else TOO_DIRTY

    def filter_all(self, state, pod, table):
        return mp.Verdicts(fits=table[GRAMS] <= state[CEILING], otherwise=TOO_DIRTY)

    def score(self, state, pod, node):
        return int(min(max(100 - node[GRAMS] / 10, 0), 100))

    def score_all(self, state, pod, table):
        return np.clip(100 - table[GRAMS] / 10, 0, 100).astype(np.int64)

    def events_to_register(self):
        return {mp.ClusterEvent.NODE_ADD: hint, mp.ClusterEvent.UPDATE_NODE_LABEL: hint}


@pytest.mark.parametrize(
    ("node", "pod", "status", "score"),
    [
        pytest.param(120, 200, mp.SUCCESS, 88, id="below the limit"),
        pytest.param(201, 200, TOO_DIRTY, 79, id="one gram too many"),
        pytest.param(None, 200, TOO_DIRTY, 0, id="a node that states nothing"),
        pytest.param(900, None, mp.SUCCESS, 10, id="a pod without a ceiling goes anywhere"),
    ],
)
def test_run_plugin(node, pod, status, score):
    got = run_plugin(CarbonAware(), make_pod(labels={LABEL: pod}), make_node(labels={LABEL: node}))
    assert (got.status, got.score) == (status, score)


def test_a_good_plugin_passes():
    check_plugin(CarbonAware())


def test_a_good_plugin_passes_on_given_pods_and_nodes():
    pods = [make_pod(labels={LABEL: ceiling}) for ceiling in (None, 50, 200)]
    nodes = [make_node(f"n{i}", labels={LABEL: i * 40}) for i in range(8)]
    check_plugin(CarbonAware(), pods=pods, nodes=nodes)


class Ten:
    """A ten-line filter, without a whole-cluster form and without declared dependencies."""

    name = "Ten"

    def filter(self, state, pod, node):
        return mp.SUCCESS if node.pod_count < 10 else mp.unschedulable("node(s) had ten pods")


class WholeOnly:
    """Only the whole-cluster forms."""

    name = "WholeOnly"
    depends = mp.Depends.USAGE
    normalizer = mp.ByMax(reverse=True)

    def filter_all(self, state, pod, table):
        return mp.Verdicts(fits=table.pod_count < 2, otherwise=mp.unschedulable("node(s) crowded"))

    def score_all(self, state, pod, table):
        return table.pod_count.copy()


class Normalizing(CarbonAware):
    def normalize_score(self, state, pod, scores):
        return scores // 2


@pytest.mark.parametrize(
    "plugin", [Ten(), WholeOnly(), Normalizing()], ids=lambda p: type(p).__name__
)
def test_other_good_plugins_pass(plugin):
    check_plugin(plugin)


def test_run_plugin_with_whole_forms_only():
    pods = [make_pod(name, node="n1") for name in ("a", "b")]
    ran = run_plugin(WholeOnly(), make_pod(), make_node("n1"), others=[make_node("n2")], pods=pods)
    assert ran == (mp.unschedulable("node(s) crowded"), 0, 2)


class Nameless(CarbonAware):
    name = ""


class MisspelledBeside:
    name = "MisspelledBeside"

    def filter(self, state, pod, node):
        return mp.SUCCESS

    def scores(self, state, pod, node):
        return 0


class Misspelled(CarbonAware):
    def preFilter(self, state, pod):
        return mp.SUCCESS


class Idle:
    name = "Idle"


class WrongArguments(CarbonAware):
    def filter(self, pod, node):
        return mp.SUCCESS


class TwinsDiffer(CarbonAware):
    def filter_all(self, state, pod, table):
        return mp.Verdicts(fits=table[GRAMS] < state[CEILING], otherwise=TOO_DIRTY)


class ScoresDiffer(CarbonAware):
    def score_all(self, state, pod, table):
        return np.clip(100 - table[GRAMS] / 10, 0, 100).round().astype(np.int64)


class IgnoresTheSlice(CarbonAware):
    def filter_all(self, state, pod, table):
        return mp.Verdicts(fits=state.table[GRAMS] <= state[CEILING], otherwise=TOO_DIRTY)


class ReturnsNothing(CarbonAware):
    filter_all = None

    def filter(self, state, pod, node):
        return None


class ReturnsMask(CarbonAware):
    def filter_all(self, state, pod, table):
        return table[GRAMS] <= state[CEILING]


class SkipsLate(CarbonAware):
    def filter(self, state, pod, node):
        return mp.SKIP


class WaitsEarly(CarbonAware):
    def pre_filter(self, state, pod):
        return mp.wait(5)


class RefusesToScore(CarbonAware):
    def pre_score(self, state, pod, feasible):
        return mp.unschedulable("no scores today")


class SkipsPermit(CarbonAware):
    def permit(self, state, pod, node):
        return mp.SKIP


class FloatScore(CarbonAware):
    def score(self, state, pod, node):
        return min(max(100 - node[GRAMS] / 10, 0), 100)


class FloatScores(CarbonAware):
    def score_all(self, state, pod, table):
        return np.clip(100 - table[GRAMS] / 10, 0, 100)


class OutOfRange(CarbonAware):
    score_all = None

    def score(self, state, pod, node):
        return 101


class OddNormalizer(CarbonAware):
    class Halves:
        def summarize(self, feasible):
            return 0

        def apply(self, raw, summary):
            return raw // 2 if isinstance(raw, int) else raw // 3

    normalizer = Halves()


class TwoNormalizers(Normalizing):
    normalizer = mp.ByMax()


class Remembers(CarbonAware):
    score_all = None
    asked = 0

    def score(self, state, pod, node):
        self.asked += 1
        return self.asked % 100


class Modifies(CarbonAware):
    def pre_filter(self, state, pod):
        pod.labels["seen"] = "yes"
        return super().pre_filter(state, pod)


class WritesIntoTheTable(CarbonAware):
    """Both forms read the array, and modify it for later callers."""

    def score_all(self, state, pod, table):
        scores = super().score_all(state, pod, table)
        table[GRAMS][:] = 0
        return scores


class ReadsTooLittle(CarbonAware):
    def reads(self, pod):
        return pod.namespace


class ReadsUnhashable(CarbonAware):
    def reads(self, pod):
        return pod.labels


class LooksAtPods(CarbonAware):
    score_all = None

    def score(self, state, pod, node):
        return node.pod_count


class LooksAtNeighbours(LooksAtPods):
    depends = mp.Depends.USAGE

    def score(self, state, pod, node):
        return node.table.size


class LooksAtTheClock(LooksAtPods):
    depends = mp.Depends.PLACEMENTS

    def score(self, state, pod, node):
        return int(state.now > 0)


class LooksAtFeasible(LooksAtPods):
    def pre_score(self, state, pod, feasible):
        state[FEASIBLE] = int(feasible.any())
        return mp.SUCCESS

    def score(self, state, pod, node):
        return state[FEASIBLE]


class DependsOnAWord(CarbonAware):
    depends = "node"


class KeepsALambda(CarbonAware):
    def __init__(self):
        self.weigh = lambda grams: grams / 10


class LambdaHint(CarbonAware):
    def events_to_register(self):
        return {mp.ClusterEvent.NODE_ADD: lambda pod, old, new: mp.Hint.QUEUE}


def short_hint(pod, new):
    return mp.Hint.QUEUE


class ShortHint(CarbonAware):
    def events_to_register(self):
        return {mp.ClusterEvent.NODE_ADD: short_hint}


def yes(pod, old, new):
    return True


class BooleanHint(CarbonAware):
    def events_to_register(self):
        return {mp.ClusterEvent.NODE_ADD: yes}


def dirtier(pod, old, new):
    cured = old is None or grams(new) > grams(old)
    return mp.Hint.QUEUE if cured else mp.Hint.QUEUE_SKIP


class HintTurnsDownACure(CarbonAware):
    def events_to_register(self):
        return {mp.ClusterEvent.NODE_ADD: dirtier, mp.ClusterEvent.UPDATE_NODE_LABEL: dirtier}


class DeafToNewNodes(CarbonAware):
    def events_to_register(self):
        return {mp.ClusterEvent.UPDATE_NODE_LABEL: hint}


class EventsByName(CarbonAware):
    def events_to_register(self):
        return {"Node/Add": hint}


class Raises(CarbonAware):
    def score(self, state, pod, node):
        return int(node.labels[LABEL])


class ColumnsByName(CarbonAware):
    columns = ("carbon",)


class SortsApples:
    name = "SortsApples"

    def queue_sort(self, pod, queued_at):
        return "soon" if queued_at < 2 else 7


class Scores:
    name = "Scores"
    depends = mp.Depends.PLACEMENTS
    normalizer = mp.ByMax()

    def score(self, state, pod, node):
        return len(node.name)


class ScoresOfGroupsDiffer(Scores):
    def group_keys(self, state, pod):
        return ()

    def score_groups(self, state, pod, groups):
        return [1000] * len(groups)


class TooFewScoresOfGroups(ScoresOfGroupsDiffer):
    def score_groups(self, state, pod, groups):
        return []


class GroupKeysOfNoKind(ScoresOfGroupsDiffer):
    def group_keys(self, state, pod):
        return "zone"


class Filters:
    name = "Filters"
    depends = mp.Depends.PLACEMENTS

    def filter(self, state, pod, node):
        return mp.SUCCESS


class GroupsDiffer(Filters):
    def group_keys(self, state, pod):
        return ()

    def filter_groups(self, state, pod, groups):
        return [False] * len(groups)


class ChangesBeyondTheTable(Filters):
    def filter_changes(self, state, pod, since):
        return 1, [10**6]


class SkipKeyUnhashable(Filters):
    def skip_key(self, state, pod):
        return []


class PreparesNothing(Filters):
    def prepare(self): ...


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(object(), "needs a class attribute `name`", id="no name"),
        pytest.param(Nameless(), "name must not be empty", id="an empty name"),
        pytest.param(
            MisspelledBeside(),
            "scores is never called; call it score",
            id="misspelled beside a correct one",
        ),
        pytest.param(
            Misspelled(), "preFilter is never called; call it pre_filter", id="misspelled"
        ),
        pytest.param(Idle(), "has no method of any extension point", id="no extension point"),
        pytest.param(
            WrongArguments(),
            r"filter must take \(state, pod, node\); it takes \(pod, node\)",
            id="wrong arguments",
        ),
        pytest.param(
            TwinsDiffer(), "filter says Success .* filter_all says Unsched", id="filters differ"
        ),
        pytest.param(ScoresDiffer(), "score says .* score_all says", id="scores differ"),
        pytest.param(IgnoresTheSlice(), "one entry per row of the table", id="ignores the slice"),
        pytest.param(ReturnsNothing(), "filter must return a Status", id="returns nothing"),
        pytest.param(ReturnsMask(), "filter_all must return Verdicts", id="returns a bare mask"),
        pytest.param(SkipsLate(), "filter must not return Skip", id="skips in filter"),
        pytest.param(WaitsEarly(), "pre_filter must not return Wait", id="waits in pre_filter"),
        pytest.param(
            RefusesToScore(), "pre_score must not return Unschedulable", id="refuses in pre_score"
        ),
        pytest.param(SkipsPermit(), "permit must not return Skip", id="skips in permit"),
        pytest.param(FloatScore(), "score must return an int", id="a float as score"),
        pytest.param(FloatScores(), "score_all must return integers", id="floats as scores"),
        pytest.param(OutOfRange(), "scores must be 0 to 100", id="a score above 100"),
        pytest.param(OddNormalizer(), "normalizer.apply gives", id="a normalizer of two minds"),
        pytest.param(TwoNormalizers(), "keep one of them", id="two ways to normalise"),
        pytest.param(Remembers(), "answers", id="remembers"),
        pytest.param(Modifies(), "was modified", id="modifies the pod"),
        pytest.param(WritesIntoTheTable(), "have to agree", id="writes into the table"),
        pytest.param(ReadsTooLittle(), r"differ in metadata\.labels", id="reads too little"),
        pytest.param(ReadsUnhashable(), "something hashable", id="reads something unhashable"),
        pytest.param(LooksAtPods(), "`depends` is NODE", id="depends on pods"),
        pytest.param(LooksAtNeighbours(), "`depends` is USAGE", id="depends on other nodes"),
        pytest.param(LooksAtTheClock(), "`depends` is PLACEMENTS", id="depends on the time"),
        pytest.param(LooksAtFeasible(), "must not look at `feasible`", id="depends on feasible"),
        pytest.param(DependsOnAWord(), "must be one of mp.Depends", id="depends is a string"),
        pytest.param(KeepsALambda(), "cannot be pickled", id="cannot be pickled"),
        pytest.param(LambdaHint(), "the hint .* cannot be pickled", id="a lambda as hint"),
        pytest.param(ShortHint(), r"must take \(pod, old, new\)", id="a hint of two arguments"),
        pytest.param(BooleanHint(), "must return mp.Hint.QUEUE", id="a hint that says True"),
        pytest.param(HintTurnsDownACure(), "would never be tried again", id="turns down a cure"),
        pytest.param(DeafToNewNodes(), "a new node makes", id="no hint for new nodes"),
        pytest.param(EventsByName(), "must map ClusterEvents", id="events by name"),
        pytest.param(Raises(), "raised (Key|Value)Error", id="raises where a label is missing"),
        pytest.param(ColumnsByName(), "tuple of mp.Column", id="columns by name"),
        pytest.param(
            ScoresOfGroupsDiffer(),
            "score says .* score_groups says",
            id="scores of groups differ",
        ),
        pytest.param(
            TooFewScoresOfGroups(), "with an integer per group", id="too few scores of groups"
        ),
        pytest.param(GroupKeysOfNoKind(), "not a tuple", id="a string as group keys"),
        pytest.param(
            GroupsDiffer(), "filter says .* filter_groups says", id="verdicts on groups differ"
        ),
        pytest.param(ChangesBeyondTheTable(), "numbers of rows", id="changes of no row"),
        pytest.param(SkipKeyUnhashable(), "something hashable", id="an unhashable skip key"),
        pytest.param(PreparesNothing(), r"must take \(template\)", id="prepare without arguments"),
        pytest.param(SortsApples(), "raised TypeError", id="keys that cannot be compared"),
    ],
)
def test_a_contract_violation_is_reported_with_what_to_change(plugin, message):
    with pytest.raises(AssertionError, match=message):
        check_plugin(plugin)
