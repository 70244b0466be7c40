"""A recording at any time is what the simulation was at that time."""

import pytest
from msgspec import structs
from tests.ui.builders import record

from moorage.errors import InputError
from moorage.planning import recording
from moorage.sim.trace import Line
from moorage.ui import documents, history, worker
from moorage.ui.timeline import NODE_LOSS, PREEMPTION, REJECTION, Timeline


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A recorded run, and the nodes of its pods at some times."""
    path = tmp_path_factory.mktemp("recording") / "run.jsonl.gz"
    states = record(path)
    return recording.read(path), states, path


def placements(snapshot):
    return {key: pod.node_name or None for key, pod in snapshot.pods.items()}


def test_the_cluster_at_any_time_forwards_and_backwards(recorded):
    recorded, states, _ = recorded
    timeline = Timeline(recorded)
    assert len(states) > 3
    for at in (*states, *reversed(states)):
        snapshot = timeline.snapshot(at)
        found = documents.cluster(snapshot)
        assert (found["at"], placements(snapshot)) == (min(at, timeline.end), states[at])
        on_nodes = sum(node is not None for node in states[at].values())
        assert (found["pods"], found["nodes"]) == (on_nodes, 2 if at >= 30 else 3)
        nodes = documents.nodes(snapshot, "pods")
        assert nodes["requested"] == [list(states[at].values()).count(n) for n in nodes["names"]]


def test_marks_and_the_course(recorded):
    timeline = Timeline(recorded[0])
    marks = [(mark.at, mark.kind, mark.name) for mark in timeline.marks]
    assert (30.0, NODE_LOSS, "node-2") in marks
    assert [name for _, kind, name in marks if kind == PREEMPTION] == ["default/low-0"]
    assert (20.0, REJECTION, "default/high") in marks
    found = timeline.document()
    assert found["counts"][NODE_LOSS] == 1
    assert found["course"]["nodes"][0] == 3
    assert found["course"]["nodes"][-1] == 2


def test_the_history_of_a_pod(recorded):
    timeline = Timeline(recorded[0])
    uid = timeline.snapshot(25.0).pods["default/high"].uid
    facts = timeline.histories.facts(uid, 55.0)
    words = [type(fact).__name__ for fact in facts]
    assert words[:2] == ["Queued", "Popped"]
    assert {"Preempting", "Refused", "Bound"} <= set(words)
    assert [type(fact).__name__ for fact in timeline.histories.facts(uid, 19.0)] == []
    decisions = history.of_node(timeline.histories.all_facts(55.0), "node-0")
    assert [(each["pod"], each["what"]) for each in decisions[-1:]] == [
        ("default/low-0", "node selected")
    ]
    assert decisions[0]["pod"] == "default/high"
    lines = worker.answer_at(timeline, "history", {"key": "default/high", "node": ""}, 55.0)
    assert b"default/low-0 on node-0" in lines
    assert b'"woken by AssignedPodDelete"' in lines
    assert worker.answer_at(timeline, "history", {"key": "x", "node": ""}, 25.0) == b'{"lines":[]}'


def test_a_recording_of_a_live_cluster_has_no_history(recorded, tmp_path):
    """The same observations as `moorage record` writes them: without calls and without effects."""
    file = recording.RecordingFile(tmp_path / "live.jsonl", "2026-11-17T12:00:00Z")
    file.write(Line(at=0.0, call="start", replica=0, seed=0))
    for line in recorded[0].lines:
        if line.call == "observe":
            file.write(structs.replace(line, effects=()))
    file.close()
    timeline, simulated = Timeline(recording.read(tmp_path / "live.jsonl")), Timeline(recorded[0])
    assert timeline.document()["live"]
    assert timeline.marks == simulated.marks
    for at in (0.0, 20.0, 51.0):
        assert placements(timeline.snapshot(at)) == placements(simulated.snapshot(at))
    assert timeline.histories.facts(timeline.snapshot(51.0).pods["default/high"].uid, 51.0) == []


def test_what_is_a_recording(recorded, tmp_path):
    *_, path = recorded
    assert recording.is_recording(path)
    assert not recording.is_recording(tmp_path)
    assert not recording.is_recording(tmp_path / "missing.gz")
    (tmp_path / "x.jsonl").write_text('{"recording":2,"config":{}}')
    assert recording.is_recording(tmp_path / "x.jsonl")
    with pytest.raises(InputError, match="version 2"):
        recording.read(tmp_path / "x.jsonl")
