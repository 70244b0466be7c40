"""What a recording of a live cluster says about pods that end, are preempted or change."""

import msgspec
from msgspec.structs import replace

from moorage.api.meta import Condition, LabelSelector
from moorage.api.pod import Affinity, PodAffinity, PodAffinityTerm
from moorage.controllers.kubelet import RUN_SECONDS
from moorage.core.observations import Added, Deleted, Updated
from moorage.planning import recording
from moorage.planning.recorded_changes import END, RecordedChanges
from moorage.planning.recording import Recording, RecordingFile
from moorage.planning.replay import rerun
from moorage.sim import trace
from moorage.sim.trace import Line
from moorage.testing import make_node, make_pod


def lines(*observations):
    """A start, and observations with their times."""
    yield Line(at=0.0, call="start", replica=0, seed=0)
    for version, (at, observation) in enumerate(observations, 1):
        obj = observation.obj
        versioned = replace(obj, metadata=replace(obj.metadata, resource_version=str(version)))
        fields = trace.observed(type(observation)(versioned))
        yield Line(at=at, call="observe", replica=0, **fields)


def live(tmp_path, *observations) -> Recording:
    file = RecordingFile(tmp_path / "live.jsonl.gz", "2026-11-17T12:00:00+00:00")
    for line in lines(*observations):
        file.write(line)
    file.close()
    return recording.read(tmp_path / "live.jsonl.gz")


def on(pod, node, phase="Running", **status):
    spec = replace(pod.spec, node_name=node)
    return replace(pod, spec=spec, status=replace(pod.status, phase=phase, **status))


POD = make_pod("job", uid="u", requests={"cpu": "3"})
NODE = make_node("a")  # of 4 CPUs


def test_a_pod_that_ends_runs_as_long_wherever_it_is_bound(tmp_path):
    second = make_pod("second", uid="v", requests={"cpu": "3"})
    recorded = live(
        tmp_path,
        (0.0, Added(NODE)),
        (5.0, Added(POD)),
        (6.0, Updated(on(POD, "a"))),
        (20.0, Added(second)),
        (66.0, Deleted(on(POD, "a", phase="Succeeded"))),
        (67.0, Updated(on(second, "a"))),
    )
    assert recorded.is_live
    (job,) = (
        change.obj for change in RecordedChanges(recorded.lines).later if change.obj.name == "job"
    )
    assert job.metadata.annotations == {RUN_SECONDS: "59.000000"}
    got = rerun(recorded)
    assert got.placements == {"default/job": ("a", "a"), "default/second": ("a", "a")}
    assert (got.recorded_waits.max, got.waits.max) == (
        47.0,
        45.0,
    )  # It is bound at once, then ends.


def test_a_pod_that_was_bound_before_ends_at_its_time(tmp_path):
    recorded = live(
        tmp_path,
        (0.0, Added(NODE)),
        (0.0, Added(on(POD, "a"))),
        (66.0, Deleted(on(POD, "a", phase="Failed"))),
    )
    (change,) = RecordedChanges(recorded.lines).later
    assert (change.at, change.verb) == (66.0, END)


def test_a_preempted_pod_is_no_change_from_outside(tmp_path):
    high = make_pod("high", uid="v", requests={"cpu": "3"}, priority=100)
    target = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    preempted = on(POD, "a", conditions=(target,))
    terminating = replace(
        preempted,
        metadata=replace(preempted.metadata, deletion_timestamp="2026-11-17T12:00:05Z"),
    )
    recorded = live(
        tmp_path,
        (0.0, Added(NODE)),
        (0.0, Added(on(POD, "a"))),
        (5.0, Added(high)),
        (5.1, Updated(preempted)),
        (5.2, Updated(terminating)),
        (6.0, Deleted(terminating)),
        (6.1, Updated(on(high, "a"))),
    )
    got = rerun(recorded)
    assert (got.recorded_evictions, got.evictions) == (1, 1)
    assert got.placements["default/high"] == ("a", "a")


def test_a_changed_label_reaches_a_pod_on_another_node(tmp_path):
    labelled = replace(POD, metadata=replace(POD.metadata, labels={"app": "web"}))
    term = PodAffinityTerm(
        label_selector=LabelSelector(match_labels={"app": "web"}), topology_key="zone"
    )
    affinity = Affinity(
        pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    )
    beside = make_pod("beside", uid="v", affinity=affinity)
    for node in ("a", "b"):  # In one of the two cases, the rerun chooses the other one.
        recorded = live(
            tmp_path,
            *((0.0, Added(make_node(name, labels={"zone": "z"}))) for name in ("a", "b")),
            (5.0, Added(POD)),
            (5.1, Updated(on(POD, node))),
            (9.0, Updated(on(labelled, node))),
            (10.0, Added(beside)),
        )
        assert rerun(recorded).pending == {}


def test_the_header_of_other_recordings_is_as_before():
    header = recording.Header(recording.VERSION, {}, "/x")
    assert msgspec.json.encode(header) == b'{"recording":1,"config":{},"baseDir":"/x"}'
