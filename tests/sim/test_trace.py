import json

from moorage.sim import trace
from moorage.sim.run import Simulation
from moorage.testing.builders import make_node, make_pod


def traced() -> list[str]:
    sim = Simulation([make_node("n1"), make_pod("web")], trace=True)
    sim.run()
    assert sim.trace is not None
    assert len(sim.trace) == len(list(sim.trace.lines()))
    return list(sim.trace.lines())


def test_every_call_is_a_line_with_its_time_and_effects():
    lines = [json.loads(line) for line in traced()]
    calls = [(line["at"], line["call"]) for line in lines]
    assert calls == [
        (0.0, "start"),
        (0.0, "observe"),
        (0.0, "observe"),
        (0.0, "schedule_one"),
        (0.0, "complete"),
        (0.0, "observe"),
        (0.0, "complete"),
        (1.0, "observe"),
    ]
    (bind,) = lines[3]["effects"]
    assert (bind["request"]["request"], bind["request"]["node"]) == ("BindPod", "n1")
    assert lines[4]["ticket"] == bind["ticket"]


def test_objects_come_as_kubernetes_writes_them():
    (listed,) = [line for line in map(json.loads, traced()) if line.get("kind") == "Node"]
    assert listed["news"] == "Listed"
    assert listed["objects"][0]["status"]["allocatable"]["cpu"] == "4"


def test_a_replay_makes_the_same_lines():
    assert list(trace.replay(traced())) == traced()


def test_a_replay_shows_what_would_be_different():
    changed = [line.replace('"pods":"110"', '"pods":"0"') for line in traced()]
    request = json.loads(list(trace.replay(changed))[3])["effects"][0]["request"]
    assert request["request"] == "EmitEvent"
