"""PluginMethod: how exceptions are worded, and the checks of what a plugin returned."""

import numpy as np
import pytest

from moorage.errors import PluginError, PluginFailure
from moorage.framework import invoke
from moorage.framework.invoke import PluginMethod
from moorage.framework.status import SKIP, SUCCESS, Verdicts, error, pending, unschedulable
from moorage.framework.views.filters import RowStatuses
from moorage.testing import make_node, make_pod, make_state, make_table

NO = unschedulable("no")
POD = make_pod("p")
TABLE = make_table([make_node("n1"), make_node("n2")])
STATE = make_state(POD, TABLE)


class Plugin:
    """Says whatever it was made with, or raises it."""

    name = "P"

    def __init__(self, answer):
        self.answer = answer

    def filter(self, state, pod, node):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    score = filter_all = score_all = filter


def method(name, answer):
    return PluginMethod(Plugin(answer), name)


@pytest.mark.parametrize(
    ("trouble", "text"),
    [
        pytest.param(ValueError("too large"), "too large", id="its words"),
        pytest.param(ValueError(), "ValueError", id="no words"),
        pytest.param(KeyError("disk"), "KeyError: 'disk'", id="a missing key"),
        pytest.param(KeyError("no disk here"), "no disk here", id="a missing key in words"),
        pytest.param(KeyError(), "KeyError", id="a missing key without words"),
        pytest.param(ValueError("one\n  two"), "one two", id="several lines"),
        pytest.param(SystemExit(3), "called sys.exit(3)", id="a way out"),
        pytest.param(SystemExit(), "called sys.exit()", id="a way out without words"),
    ],
)
def test_describe(trouble, text):
    assert invoke.describe(trouble) == text


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(SUCCESS, SUCCESS, id="fits"),
        pytest.param(NO, NO, id="does not"),
        pytest.param(PluginFailure("no disk"), error("no disk", "P"), id="fails on purpose"),
        pytest.param(
            ValueError("what?"), error("what? (test_invoke.py:29)", "P"), id="raises for that node"
        ),
        pytest.param(
            SystemExit(1),
            error("called sys.exit(1) (test_invoke.py:29)", "P"),
            id="sys.exit is an error, too",
        ),
        pytest.param(None, error("filter returned None, which is not a Status", "P"), id="nothing"),
    ],
)
def test_filter_one(answer, status):
    assert invoke.filter_one(method("filter", answer), STATE, POD, TABLE.info(0)) == status


def test_ctrl_c_is_meant_for_us():
    with pytest.raises(KeyboardInterrupt):
        invoke.filter_one(method("filter", KeyboardInterrupt()), STATE, POD, TABLE.info(0))


@pytest.mark.parametrize("call", [invoke.filter_rows, invoke.score_rows])
def test_sys_exit_in_a_whole_cluster_form_is_an_error_of_the_plugin(call):
    with pytest.raises(PluginError, match=r"called sys.exit\(1\)"):
        call(method(call.__name__.replace("rows", "all"), SystemExit(1)), STATE, POD, np.arange(2))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(ValueError("filter_all must return Verdicts"), id="trouble"),
        pytest.param(SUCCESS, id="a single status"),
        pytest.param(np.ones(TABLE.capacity, dtype=bool), id="a bare mask"),
        pytest.param(Verdicts(fits=np.ones(2, dtype=bool), otherwise=NO), id="too short"),
    ],
)
def test_wrong_verdicts_for_many_rows_name_the_plugin(answer):
    with pytest.raises(PluginError, match='running "P" filter plugin: filter_all must') as raised:
        invoke.filter_rows(method("filter_all", answer), STATE, POD, TABLE)
    assert raised.value.plugin == "P"


def test_verdicts_for_many_rows():
    verdicts = Verdicts(fits=np.ones(TABLE.capacity, dtype=bool), otherwise=NO)
    assert invoke.filter_rows(method("filter_all", verdicts), STATE, POD, TABLE) is verdicts


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        pytest.param(7, 7, id="an integer"),
        pytest.param(7.9, 7, id="a float is cut"),
        pytest.param(np.int64(7), 7, id="numpy's"),
        pytest.param(True, 1, id="a boolean"),
    ],
)
def test_score_one(answer, score):
    assert invoke.score_one(method("score", answer), STATE, POD, TABLE.info(0)) == score


@pytest.mark.parametrize("answer", [ValueError("x"), None, "x", float("nan")], ids=repr)
def test_a_score_that_is_none(answer):
    with pytest.raises(PluginError, match='running Score plugins: plugin "P" failed with: '):
        invoke.score_one(method("score", answer), STATE, POD, TABLE.info(0))


@pytest.mark.parametrize(
    ("dtype", "becomes"),
    [
        (np.int64, np.int64),
        (np.int32, np.int32),
        (np.int8, np.int64),
        (np.float64, np.int64),
        (np.bool_, np.int64),
    ],
)
def test_scores_of_any_kind_become_integers(dtype, becomes):
    scores = invoke.score_rows(
        method("score_all", np.ones(TABLE.capacity, dtype=dtype)), STATE, POD, TABLE
    )
    assert (scores.dtype, scores[0]) == (becomes, 1)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(ValueError("x"), "x", id="trouble"),
        pytest.param(np.ones(2), "score_all must return an array", id="too short"),
        pytest.param(7, "score_all must return an array", id="a single number"),
        pytest.param(np.array(["x"] * TABLE.capacity), "invalid literal", id="words"),
    ],
)
def test_wrong_scores_for_many_rows_name_the_plugin(answer, text):
    with pytest.raises(PluginError, match=f'Score plugins: plugin "P" failed with: {text}'):
        invoke.score_rows(method("score_all", answer), STATE, POD, TABLE)


def test_statuses_are_interned_as_codes():
    rows = RowStatuses("", 4)
    codes = [rows.code(status) for status in (NO, SUCCESS, pending("soon"), NO)]
    assert codes == [-1, 0, -2, -1]
    assert (rows.status_for(-1), rows.status_for(-2)) == (NO, pending("soon"))
    assert not rows.has_errors


@pytest.mark.parametrize("status", [error("x"), SKIP], ids=["an error", "a code out of place"])
def test_a_status_that_is_no_rejection_counts_as_an_error(status):
    rows = RowStatuses("", 4)
    rows.code(status)
    assert rows.has_errors


def test_slow_plugins_are_named_once():
    loops = invoke.Loops()
    loops.add("P", "filter", invoke.Loops.SLOW - 1)
    assert loops.newly_slow() == []
    loops.add("P", "filter", 1)
    loops.add("P", "score", 5)
    assert loops.newly_slow() == [("P", "filter", invoke.Loops.SLOW)]
    loops.add("P", "filter", 1)
    assert loops.newly_slow() == []
