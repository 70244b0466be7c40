"""Post filter plugins asked in turn; the numbers are rows of the specification."""

import pytest

from moorage.framework import post_filter
from moorage.framework.effects import DeletePod, PodRef
from moorage.framework.post_filter import PostFiltered
from moorage.framework.status import SUCCESS, Code, error, unresolvable, unschedulable

A_NO, B_NO = unschedulable("no a").by("A"), unschedulable("no b", "nor c").by("B")
DELETE = DeletePod(PodRef("default", "victim", "uid"))


def run(*answers):
    asked = []

    def asking(answer):
        return lambda: asked.append(answer) or answer

    return post_filter.run([asking(answer) for answer in answers]), len(asked)


@pytest.mark.parametrize(
    ("answers", "expected", "asked"),
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
            id="59: an error ends it at once",
        ),
        pytest.param(
            [PostFiltered(A_NO), PostFiltered(B_NO)],
            PostFiltered(unschedulable("no a", "no b", "nor c").by("A")),
            2,
            id="59: unschedulable twice: all reasons, signed by the first",
        ),
        pytest.param(
            [PostFiltered(unresolvable("never").by("A")), PostFiltered(SUCCESS, "n1")],
            PostFiltered(unresolvable("never").by("A")),
            1,
            id="unresolvable ends it at once",
        ),
        pytest.param(
            [PostFiltered(SUCCESS, "n1"), PostFiltered(SUCCESS, "n2")],
            PostFiltered(SUCCESS, "n1"),
            1,
            id="the first success is enough",
        ),
        pytest.param(
            [PostFiltered(A_NO, ""), PostFiltered(B_NO)],
            PostFiltered(unschedulable("no a", "no b", "nor c").by("A"), ""),
            2,
            id="a promise taken back stays taken back",
        ),
        pytest.param(
            [PostFiltered(A_NO, "n1"), PostFiltered(B_NO, "")],
            PostFiltered(unschedulable("no a", "no b", "nor c").by("A"), ""),
            2,
            id="the last word on the promise counts",
        ),
    ],
)
def test_59_run(answers, expected, asked):
    assert run(*answers) == (expected, asked)


def test_nobody_to_ask():
    answer, _ = run()
    assert (answer.status.code, answer.nominated) == (Code.UNSCHEDULABLE, None)
