"""Golden cases as test parameters, and what of two answers has to be equal (golden/README.md)."""

import gzip
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

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
    "dra",
    "found",
    "wrapped",
    "hard/affin",
    "hard/badpref",
    "hard/dracon",
    "hard/dramix",
    "hard/images",
    "hard/mix",
    "hard/nodesel",
    "hard/nominated",
    "hard/podres",
    "hard/points",
    "hard/ports",
    "hard/preempt",
    "hard/profile",
    "hard/quant",
    "hard/topo",
    "hard/vol",
)
CEL_ERROR = re.compile(r"(CEL (?:compile|runtime) error).*")


def cases() -> list[Any]:
    recorded = [each for family in FAMILIES for each in read(family)]
    return [pytest.param(each["case"], each["want"], id=each["case"]["id"]) for each in recorded]


def read(family: str) -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / f"{family}.jsonl.gz") as lines:
        return [msgspec.json.decode(line) for line in lines]


def comparable(answer: dict[str, Any], *, nominated_only: bool = False) -> dict[str, Any]:
    """The fields that have to be equal, in a form in which order does not matter.

    With `nominated_only`, kube-scheduler filtered the nominated node only, and Moorage all nodes.
    """
    if "preEnqueue" in answer:
        return {"preEnqueue": status(answer["preEnqueue"])}
    if "error" in answer or "errorAnyOf" in answer:
        return {"error": True}  # One of several texts: see `errors`.
    if nominated_only:
        answer = {**answer, "feasible": [], "rejected": {}}
    return {
        "feasible": sorted(answer["feasible"]),
        "rejected": {n: status(v) for n, v in answer.get("rejected", {}).items()},
        "scores": {n: scores(by) for n, by in answer.get("scores", {}).items()},
        "totals": answer.get("totals", {}),
        "best": sorted(answer.get("best", [])),
        "message": answer.get("message", ""),
        "preemptionMessage": answer.get("preemptionMessage", ""),
        "candidates": answer.get("candidates", {}),
        "allocations": answer.get("allocations", {}),
        # Not compared where preemption helps: its text is all that is shown then.
        "postFilter": "" if answer.get("candidates") else answer.get("postFilter", ""),
    }


def errors(want: dict[str, Any]) -> list[str]:
    """The texts with which an attempt may fail; what CEL says is not compared."""
    return [without_cel(text) for text in want.get("errorAnyOf", [])]


def without_cel(text: str) -> str:
    return CEL_ERROR.sub(r"\1", text)


def status(recorded: dict[str, Any]) -> tuple[str, list[str]]:
    return recorded["code"], sorted(recorded["reasons"])


def scores(by_plugin: dict[str, int]) -> dict[str, int]:
    """The scores of a node; a plugin that is missing counts as 0."""
    return {plugin: score for plugin, score in by_plugin.items() if score}
