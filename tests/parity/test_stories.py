"""Stories recorded from kube-scheduler: who is bound, and who waits why, after each step."""

import re
from typing import Any

import pytest

from moorage import Simulation
from moorage.cluster.status_errors import NotFoundError

from .cases import read

# Longer than any back-off, shorter than the flush of pods that wait.
STEP_SECONDS = 20.0
# What DynamicResources adds for pods without claims, and the node that a pod is nominated to.
ADDED = re.compile(r"^\[\w+\] |no new claims to deallocate(, )?|(?<=\. )not found$")

# Another run of kube-scheduler ends these as Simulation does: which event comes first decides.
RACES = {
    "seq-c-0002": "a preemptor stays gated, because the deletion of its last victim came too early",
    "seq-c-0042": "a binding was observed after the next attempt, so that this was repeated",
}


def stories() -> list[Any]:
    found = []
    for each in read("hard/stories"):
        name = each["case"]["id"]
        why = RACES.get(name)
        marks = [pytest.mark.xfail(strict=True, reason=why)] if why else []
        found.append(pytest.param(each["case"], each["states"], id=name, marks=marks))
    return found


@pytest.mark.parametrize(("case", "states"), stories())
def test_story(case: dict[str, Any], states: list[dict[str, Any]]) -> None:
    sim = Simulation(case["objects"], case["config"])
    for step, state in zip(([], *case["steps"]), states, strict=True):
        for operation in step:
            perform(sim, operation)
        sim.run(until=sim.now + STEP_SECONDS)
        assert {pod: node for pod, node in sim.placements.items() if node} == state["bound"]
        pending = sim.pending
        assert pending.keys() == state["pending"].keys()
        for pod, message in state["pending"].items():
            if message:  # Pods that are gated have none.
                assert pending[pod] == ADDED.sub("", message).strip()


def perform(sim: Simulation, operation: dict[str, Any]) -> None:
    try:
        match operation:
            case {"op": "create", "obj": obj}:
                sim.create([obj])
            case {"op": "update", "obj": obj}:
                # Written whatever the version was.
                meta = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
                sim.update({**obj, "metadata": meta})
            case {"op": "delete", "kind": kind, "name": name}:
                sim.delete(kind, operation.get("namespace", ""), name)
    except NotFoundError:
        pass  # The pod was preempted before.
