"""Post filter plugins run in order. Numbers are rows of the specification."""

import pytest

from moorage.api.server_requests import DeletePod, PodRef
from moorage.core import post_filters
from moorage.framework.post_filter import PostFiltered
from moorage.framework.status import SUCCESS, Code, error, unresolvable, unschedulable

A_NO, B_NO = unschedulable("no a").by("A"), unschedulable("no b", "nor c").by("B")
DELETE = DeletePod(PodRef("default", "victim", "uid"))


def run(*results):
    calls = []

    def call(result):
        calls.append(result)
        return result

    return post_filters.combined(call(result) for result in results), len(calls)


@pytest.mark.parametrize(
    ("results", "expected", "calls"),
    [
        pytest.param(
            [PostFiltered(A_NO), PostFiltered(SUCCESS, "n1", (DELETE,))],
            PostFiltered(SUCCESS, "n1", (DELETE,)),
            2,
            id="59: unschedulable, then success",
        ),
        pytest.param(
            [PostFiltered(error("broken", "A")), PostFiltered(SUCCESS, "n1")],
            PostFiltered(error("broken", "A")),
            1,
            id="59: an error stops the run",
        ),
        pytest.param(
            [PostFiltered(A_NO), PostFiltered(B_NO)],
            PostFiltered(unschedulable("no a", "no b", "nor c").by("A")),
            2,
            id="59: unschedulable twice: all reasons, plugin name of the first",
        ),
        pytest.param(
            [PostFiltered(unresolvable("never").by("A")), PostFiltered(SUCCESS, "n1")],
            PostFiltered(unresolvable("never").by("A")),
            1,
            id="unresolvable stops the run",
        ),
        pytest.param(
            [PostFiltered(SUCCESS, "n1"), PostFiltered(SUCCESS, "n2")],
            PostFiltered(SUCCESS, "n1"),
            1,
            id="the first success stops the run",
        ),
        pytest.param(
            [PostFiltered(A_NO, ""), PostFiltered(B_NO)],
            PostFiltered(unschedulable("no a", "no b", "nor c").by("A"), ""),
            2,
            id="a cleared nomination stays cleared",
        ),
        pytest.param(
            [PostFiltered(A_NO, "n1"), PostFiltered(B_NO, "")],
            PostFiltered(unschedulable("no a", "no b", "nor c").by("A"), ""),
            2,
            id="the last nomination counts",
        ),
    ],
)
def test_59_run(results, expected, calls):
    assert run(*results) == (expected, calls)


def test_without_plugins_the_pod_is_unschedulable():
    result, _ = run()
    assert (result.status.code, result.nominated) == (Code.UNSCHEDULABLE, None)
