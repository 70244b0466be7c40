"""PluginMethod: the texts of exceptions, and the checks of return values."""

import numpy as np
import pytest

from moorage.errors import PluginError, PluginFailure, describe
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
    """Returns or raises the value that it was built with."""

    name = "P"

    def __init__(self, result):
        self.result = result

    def filter(self, state, pod, node):
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result

    score = filter_all = score_all = filter


def method(name, result):
    return PluginMethod(Plugin(result), name)


@pytest.mark.parametrize(
    ("exception", "text"),
    [
        pytest.param(ValueError("too large"), "too large", id="a message"),
        pytest.param(ValueError(), "ValueError", id="no message"),
        pytest.param(KeyError("disk"), "KeyError: 'disk'", id="a missing key"),
        pytest.param(KeyError("no disk here"), "no disk here", id="a KeyError with a sentence"),
        pytest.param(KeyError(), "KeyError", id="a KeyError without arguments"),
        pytest.param(ValueError("one\n  two"), "one two", id="several lines"),
        pytest.param(ValueError("'one',  or"), "'one',  or", id="two spaces"),
        pytest.param(SystemExit(3), "called sys.exit(3)", id="sys.exit with a code"),
        pytest.param(SystemExit(), "called sys.exit()", id="sys.exit without a code"),
    ],
)
def test_describe(exception, text):
    assert describe(exception) == text


@pytest.mark.parametrize(
    ("result", "status"),
    [
        pytest.param(SUCCESS, SUCCESS, id="success"),
        pytest.param(NO, NO, id="rejected"),
        pytest.param(PluginFailure("no disk"), error("no disk", "P"), id="raises PluginFailure"),
        pytest.param(
            ValueError("what?"),
            error("what? (test_invoke.py:29)", "P"),
            id="raises another exception",
        ),
        pytest.param(
            SystemExit(1),
            error("called sys.exit(1) (test_invoke.py:29)", "P"),
            id="sys.exit is an error, too",
        ),
        pytest.param(
            None,
            error("filter returned None, which is not a Status (test_invoke.py:27)", "P"),
            id="returns None",
        ),
    ],
)
def test_filter_one(result, status):
    assert invoke.filter_one(method("filter", result), STATE, POD, TABLE.info(0)) == status


def test_keyboard_interrupt_is_not_caught():
    with pytest.raises(KeyboardInterrupt):
        invoke.filter_one(method("filter", KeyboardInterrupt()), STATE, POD, TABLE.info(0))


@pytest.mark.parametrize("call", [invoke.filter_rows, invoke.score_rows])
def test_sys_exit_in_a_whole_cluster_form_is_an_error_of_the_plugin(call):
    with pytest.raises(PluginError, match=r"called sys.exit\(1\)"):
        call(method(call.__name__.replace("rows", "all"), SystemExit(1)), STATE, POD, np.arange(2))


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(ValueError("filter_all must return Verdicts"), id="raises"),
        pytest.param(SUCCESS, id="a single status"),
        pytest.param(np.ones(TABLE.capacity, dtype=bool), id="a bare mask"),
        pytest.param(Verdicts(fits=np.ones(2, dtype=bool), otherwise=NO), id="too short"),
    ],
)
def test_wrong_verdicts_for_many_rows_name_the_plugin(result):
    with pytest.raises(PluginError, match='running "P" filter plugin: filter_all must') as raised:
        invoke.filter_rows(method("filter_all", result), STATE, POD, TABLE)
    assert raised.value.plugin == "P"


def test_verdicts_for_many_rows():
    verdicts = Verdicts(fits=np.ones(TABLE.capacity, dtype=bool), otherwise=NO)
    assert invoke.filter_rows(method("filter_all", verdicts), STATE, POD, TABLE) is verdicts


@pytest.mark.parametrize(
    ("result", "score"),
    [
        pytest.param(7, 7, id="an integer"),
        pytest.param(7.9, 7, id="a float is cut"),
        pytest.param(np.int64(7), 7, id="numpy's"),
        pytest.param(True, 1, id="a boolean"),
    ],
)
def test_score_one(result, score):
    assert invoke.score_one(method("score", result), STATE, POD, TABLE.info(0)) == score


@pytest.mark.parametrize("result", [ValueError("x"), None, "x", float("nan")], ids=repr)
def test_an_invalid_score_raises(result):
    with pytest.raises(PluginError, match='running Score plugins: plugin "P" failed with: '):
        invoke.score_one(method("score", result), STATE, POD, TABLE.info(0))


@pytest.mark.parametrize("result", [None, "50", [50]], ids=repr)
def test_a_score_that_is_no_number_names_the_plugin_and_its_line(result):
    with pytest.raises(PluginError) as raised:
        invoke.score_one(method("score", result), STATE, POD, TABLE.info(0))
    text = f"a score has to be a whole number, is {result!r} (test_invoke.py:"
    assert f'running Score plugins: plugin "P" failed with: {text}' in str(raised.value)


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
    ("result", "text"),
    [
        pytest.param(ValueError("x"), "x", id="raises"),
        pytest.param(np.ones(2), "score_all must return an array", id="too short"),
        pytest.param(7, "score_all must return an array", id="a single number"),
        pytest.param(np.array(["x"] * TABLE.capacity), "scores have to be numbers", id="strings"),
    ],
)
def test_wrong_scores_for_many_rows_name_the_plugin(result, text):
    with pytest.raises(PluginError, match=f'Score plugins: plugin "P" failed with: {text}'):
        invoke.score_rows(method("score_all", result), STATE, POD, TABLE)


def test_statuses_are_interned_as_codes():
    rows = RowStatuses("", 4)
    codes = [rows.code(status) for status in (NO, SUCCESS, pending("soon"), NO)]
    assert codes == [-1, 0, -2, -1]
    assert (rows.status_for(-1), rows.status_for(-2)) == (NO, pending("soon"))
    assert not rows.has_errors


@pytest.mark.parametrize(
    "status", [error("x"), SKIP], ids=["an error", "a code that is not allowed here"]
)
def test_a_status_that_is_no_rejection_counts_as_an_error(status):
    rows = RowStatuses("", 4)
    rows.code(status)
    assert rows.has_errors


def test_a_slow_plugin_is_reported_once():
    loops = invoke.Loops()
    loops.add("P", "filter", invoke.Loops.SLOW - 1)
    assert loops.newly_slow() == []
    loops.add("P", "filter", 1)
    loops.add("P", "score", 5)
    assert loops.newly_slow() == [("P", "filter", invoke.Loops.SLOW)]
    loops.add("P", "filter", 1)
    assert loops.newly_slow() == []
