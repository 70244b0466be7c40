"""The message of an unschedulable pod. Numbers are rows of the specification."""

import pytest

from moorage.framework.status import summarize, unresolvable, unschedulable

CPU, MEMORY = unschedulable("Insufficient cpu"), unschedulable("Insufficient memory")
BOTH = unschedulable("Insufficient cpu", "Insufficient memory")
ABSENT = unresolvable("node(s) didn't satisfy plugin(s) [A]")


@pytest.mark.parametrize(
    ("nodes", "given", "message"),
    [
        pytest.param(3, {"rejected": [(CPU, 3)]}, "3 Insufficient cpu.", id="one reason"),
        pytest.param(
            3,
            {"rejected": [(CPU, 2), (BOTH, 1)]},
            "1 Insufficient memory, 3 Insufficient cpu.",
            id="a status of two reasons counts in both",
        ),
        pytest.param(
            12,
            {"rejected": [(CPU, 2), (MEMORY, 10)]},
            "10 Insufficient memory, 2 Insufficient cpu.",
            id="sorted as text",
        ),
        pytest.param(
            2,
            {"rejected": [(CPU, 1)], "absent": ABSENT},
            "1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [A].",
            id="46: nodes outside of the node set",
        ),
        pytest.param(
            2,
            {"absent": ABSENT},
            "2 node(s) didn't satisfy plugin(s) [A].",
            id="46: all nodes outside of the node set",
        ),
        pytest.param(
            1,
            {"rejected": [(CPU, 1)], "absent": ABSENT},
            "1 Insufficient cpu.",
            id="no node outside of the node set",
        ),
        pytest.param(
            2,
            {"pre_filter": "no such claim", "rejected": [(CPU, 2)]},
            "no such claim.",
            id="the message of pre_filter replaces the counts",
        ),
        pytest.param(
            2,
            {"rejected": [(CPU, 1), (CPU.by("Fit"), 1)]},
            "2 Insufficient cpu.",
            id="one reason from two plugins",
        ),
    ],
)
def test_summarize(nodes, given, message):
    assert summarize(nodes, **given) == f"0/{nodes} nodes are available: {message}"


def test_a_rejection_without_reasons():
    assert summarize(2, rejected=[(unschedulable(), 2)]) == "0/2 nodes are available:"
