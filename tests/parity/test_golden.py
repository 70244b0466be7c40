"""Golden cases recorded from kube-scheduler: every status, score and pick equal, or it is a bug."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage import explain

GOLDEN = Path(__file__).parent / "golden"
FAMILIES = (
    "resources",
    "nodes",
    "ports",
    "affinity",
    "spread",
    "preemption",
    "priorityclass",
    "mixed",
    "config",
    "volumes",
)


def cases(families: tuple[str, ...]) -> Iterator[Any]:
    for family in families:
        with gzip.open(GOLDEN / f"{family}.jsonl.gz") as lines:
            for line in lines:
                recorded = msgspec.json.decode(line)
                yield pytest.param(recorded["case"], recorded["want"], id=recorded["case"]["id"])


@pytest.mark.parametrize(("case", "want"), list(cases(FAMILIES)))
def test_explain_agrees(case: dict[str, Any], want: dict[str, Any]) -> None:
    pod = f"{case['pod']['namespace']}/{case['pod']['name']}"
    got = explain(case["objects"], pod, config=case.get("config")).to_dict()
    assert comparable(got) == comparable(want)
    if want.get("best"):
        assert got["picked"] in want["best"]
    assert (got.get("nominated") is None) == ("nominatedAnyOf" not in want)
    assert got.get("nominated") in [None, *want.get("nominatedAnyOf", [])]


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """The fields that have to be equal, in a form in which order does not matter."""
    if "preEnqueue" in answer:
        return {"preEnqueue": verdict(answer["preEnqueue"])}
    scores = answer.get("scores", {})
    return {
        "feasible": sorted(answer["feasible"]),
        "rejected": {n: verdict(v) for n, v in answer.get("rejected", {}).items()},
        # A plugin that is missing counts as 0.
        "scores": {n: {p: s for p, s in by.items() if s} for n, by in scores.items()},
        "totals": answer.get("totals", {}),
        "best": sorted(answer.get("best", [])),
        "message": answer.get("message", ""),
        "preemptionMessage": answer.get("preemptionMessage", ""),
        "candidates": answer.get("candidates", {}),
    }


def verdict(status: dict[str, Any]) -> tuple[str, list[str]]:
    return status["code"], sorted(status["reasons"])
