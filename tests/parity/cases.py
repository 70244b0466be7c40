"""Golden cases as test parameters, and what of two answers has to be equal (golden/README.md)."""

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

GOLDEN = Path(__file__).parent / "golden"
# `dra` is recorded too, but not run: Moorage has no DynamicResources plugin yet.
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


def cases() -> list[Any]:
    recorded = [each for family in FAMILIES for each in read(family)]
    return [pytest.param(each["case"], each["want"], id=each["case"]["id"]) for each in recorded]


def read(family: str) -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / f"{family}.jsonl.gz") as lines:
        return [msgspec.json.decode(line) for line in lines]


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """The fields that have to be equal, in a form in which order does not matter."""
    if "preEnqueue" in answer:
        return {"preEnqueue": status(answer["preEnqueue"])}
    return {
        "feasible": sorted(answer["feasible"]),
        "rejected": {n: status(v) for n, v in answer.get("rejected", {}).items()},
        "scores": {n: scores(by) for n, by in answer.get("scores", {}).items()},
        "totals": answer.get("totals", {}),
        "best": sorted(answer.get("best", [])),
        "message": answer.get("message", ""),
        "preemptionMessage": answer.get("preemptionMessage", ""),
        "candidates": answer.get("candidates", {}),
    }


def status(recorded: dict[str, Any]) -> tuple[str, list[str]]:
    return recorded["code"], sorted(recorded["reasons"])


def scores(by_plugin: dict[str, int]) -> dict[str, int]:
    """The scores of a node; a plugin that is missing counts as 0."""
    return {plugin: score for plugin, score in by_plugin.items() if score}
