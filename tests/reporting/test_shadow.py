"""The HTML report of a shadow."""

from collections import Counter

from moorage.reporting import shadow
from moorage.shadow.comparison import PodComparison
from moorage.shadow.tally import PendingCounts, ShadowTally


def tally(*found):
    made = ShadowTally(lambda: PendingCounts(Counter({("decided", "rejected"): 2})))
    for each in found:
        made.add(each)
    return made


def test_every_verdict_and_reason_has_a_row_with_its_meaning():
    text = shadow.render(
        tally(
            PodComparison(pod="a", node="x", other_node="x", verdict="same", seconds=0.001),
            PodComparison(
                pod="b",
                node="x",
                other_node="y",
                verdict="worse",
                reason="sampling",
                total=9,
                other_total=7,
                plugins={"NodeResourcesFit": 2},
            ),
        )
    )
    assert "<td>sampling</td>" in text
    assert "More nodes are feasible than kube-scheduler scores by default." in text
    assert "NodeResourcesFit +2" in text
    assert "1.0 ms" in text
    assert "<td>decided</td><td>rejected</td>" in text


def test_names_are_escaped():
    hostile = PodComparison(
        pod="<script>", node="x", other_node="y", verdict="equal", reason="tie", message="<b>"
    )
    text = shadow.render(tally(hostile))
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text
    assert "&lt;b&gt;" in text


def test_without_a_comparison():
    assert "pods compared" in shadow.render(tally())
