"""Metrics: what pods go through shows under kube-scheduler's names, labels and buckets."""

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.group_builders import gang

from moorage.api import config, defaults, manifests
from moorage.api.server_requests import BindPod
from moorage.core.effects import Done, Failed
from moorage.core.journal import Journal
from moorage.core.observations import Added, Deleted, Listed, Updated
from moorage.core.scheduler import Scheduler
from moorage.framework.registry import Registry
from moorage.framework.status import SUCCESS, wait
from moorage.framework.views.template import TemplateViews
from moorage.metrics import meter as meters
from moorage.metrics.families import Families
from moorage.metrics.meter import Meter
from moorage.metrics.tallies import FRESH, Histogram, exponential
from moorage.testing import make_node, make_pod

DEFAULT = "default-scheduler"
POD = make_pod("p", uid="p", requests={"cpu": "1"})
HUGE = make_pod("huge", uid="huge", requests={"cpu": "99"})


class Ticking:
    """A clock that advances by a millisecond on every reading."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 0.001
        return self.now


class Waits:
    name = "Waits"

    def permit(self, state, pod, node):
        return wait(60)


class Everywhere:
    name = "Everywhere"

    def reserve(self, state, pod, node):
        return SUCCESS

    def permit(self, state, pod, node):
        return SUCCESS

    def post_bind(self, state, pod, node):
        pass


class Measured:
    """A scheduler and its meter; every effect is performed by default."""

    def __init__(self, *plugins, nodes=("n1", "n2"), chance=0.0, **settings):
        enabled = {"multiPoint": {"enabled": [{"name": plugin.name} for plugin in plugins]}}
        plain = {"apiVersion": config.API_VERSION, "kind": config.KIND, **settings}
        plain.setdefault("profiles", [{"plugins": enabled}])
        self.meter = Meter(Ticking(), lambda: chance, journal_limit=1000)
        self.scheduler = Scheduler(
            config.load(plain),
            registry=Registry({plugin.name: plugin for plugin in plugins}),
            journal=self.meter.journal,
        )
        self.meter.attach(self.scheduler)
        self.now = 0.0
        for node in nodes:
            self.observe(Added(make_node(node)))

    def observe(self, observation):
        return self.scheduler.observe(observation, self.now)

    def schedule(self, *pods, outcome=Done(), seconds=1.0):  # noqa: B008  # it is frozen
        for pod in pods:
            self.observe(Added(pod))
        while self.scheduler.has_work:
            for effect in self.scheduler.schedule_one(self.now):
                if isinstance(effect.request, BindPod):
                    self.now += seconds
                    self.scheduler.complete(effect.ticket, outcome, self.now)
            if outcome != Done():
                break
        return self

    @property
    def values(self):
        """Sample name and label values, in the order of their names -> value."""
        found = {}
        for family in text_string_to_metric_families(self.meter.text().decode()):
            for sample in family.samples:
                labels = tuple(value for _, value in sorted(sample.labels.items()))
                found[sample.name, *labels] = sample.value
        return found


def test_a_pod_that_is_scheduled():
    got = Measured().schedule(POD).values
    assert got["scheduler_schedule_attempts_total", DEFAULT, "scheduled"] == 1
    assert got["scheduler_scheduling_attempt_duration_seconds_count", DEFAULT, "scheduled"] == 1
    assert got["scheduler_scheduling_algorithm_duration_seconds_count",] == 1
    assert got["scheduler_pod_scheduling_attempts_sum",] == 1
    assert got["scheduler_pod_scheduling_sli_duration_seconds_sum", "1"] == 1.0
    assert got["scheduler_queue_incoming_pods_total", "UnschedulablePodAdd", "active"] == 1
    assert got["scheduler_cache_size", "pods"] == got["scheduler_cache_size", "assumed_pods"] == 1
    assert got["scheduler_cache_size", "nodes"] == 2
    assert got["scheduler_preemption_attempts_total",] == 0


def test_a_pod_without_a_feasible_node():
    got = Measured().schedule(HUGE).values
    assert got["scheduler_schedule_attempts_total", DEFAULT, "unschedulable"] == 1
    assert got["scheduler_scheduling_attempt_duration_seconds_count", DEFAULT, "unschedulable"] == 1
    assert got["scheduler_unschedulable_pods", "NodeResourcesFit", DEFAULT] == 1
    assert got["scheduler_pending_pods", "unschedulable"] == 1
    assert got["scheduler_preemption_attempts_total",] == 1
    assert ("scheduler_pod_scheduling_attempts_sum",) not in got


def test_a_pod_whose_binding_fails():
    got = Measured().schedule(POD, outcome=Failed("no")).values
    assert got["scheduler_schedule_attempts_total", DEFAULT, "error"] == 1
    assert got["scheduler_pending_pods", "backoff"] == 1


def test_a_pod_that_preempts_others():
    low = make_pod("low", uid="low", requests={"cpu": "4"}, node="n1", priority=1)
    high = make_pod("high", uid="high", requests={"cpu": "4"}, priority=9)
    made = Measured(nodes=("n1",))
    made.observe(Added(low))
    got = made.schedule(high).values
    assert got["scheduler_preemption_attempts_total",] == 1
    assert got["scheduler_preemption_victims_sum",] == 1


def test_a_cluster_without_nodes_is_no_reason_to_preempt():
    got = Measured(nodes=()).schedule(POD).values
    assert got["scheduler_preemption_attempts_total",] == 0


def test_a_gated_pod():
    got = Measured().schedule(make_pod("g", gates=["later"])).values
    assert got["scheduler_pending_pods", "gated"] == 1
    assert got["scheduler_unschedulable_pods", "SchedulingGates", DEFAULT] == 1


def test_a_pod_that_waits_on_permit():
    made = Measured(Waits).schedule(POD)
    assert made.values["scheduler_inflight_events", "PodPopped"] == 1
    made.scheduler.cluster.waiting["p"].allow("Waits")
    made.scheduler.advance(7.0)
    assert made.values["scheduler_permit_wait_duration_seconds_sum", "Success"] == 7.0


def test_a_second_attempt_counts_from_the_first():
    made = Measured()
    made.schedule(POD, outcome=Failed("no"), seconds=0.0)
    made.now = 10.0
    made.scheduler.advance(made.now)
    got = made.schedule().values
    assert got["scheduler_pod_scheduling_attempts_sum",] == 2
    assert got["scheduler_pod_scheduling_sli_duration_seconds_sum", "2"] == 11.0
    assert got["scheduler_queue_incoming_pods_total", "BackoffComplete", "active"] == 1


def test_profiles_have_separate_series():
    other = make_pod("q", uid="q", scheduler_name="other")
    profiles = [{"schedulerName": DEFAULT}, {"schedulerName": "other"}]
    got = Measured(profiles=profiles).schedule(POD, other).values
    assert got["scheduler_schedule_attempts_total", DEFAULT, "scheduled"] == 1
    assert got["scheduler_schedule_attempts_total", "other", "scheduled"] == 1


@pytest.mark.parametrize(
    "point", ["PreEnqueue", "PreFilter", "Filter", "Score", "Reserve", "Permit", "Bind", "PostBind"]
)
def test_every_point_is_timed(point):
    got = Measured(Everywhere).schedule(POD).values
    name = "scheduler_framework_extension_point_duration_seconds_count"
    assert got[name, point, DEFAULT, "Success"] == 1


def test_a_point_without_plugins_is_not_timed():
    got = Measured().schedule(POD).values
    name = "scheduler_framework_extension_point_duration_seconds_count"
    assert (name, "PostBind", DEFAULT, "Success") not in got


def test_a_rejection_is_the_status_label_of_its_point():
    got = Measured().schedule(HUGE).values
    name = "scheduler_framework_extension_point_duration_seconds_count"
    assert got[name, "Filter", DEFAULT, "Unschedulable"] == 1
    assert got[name, "PostFilter", DEFAULT, "Unschedulable"] == 1


@pytest.mark.parametrize(
    ("chance", "measured"),
    [pytest.param(0.05, True, id="one in ten"), pytest.param(0.5, False, id="the other nine")],
)
def test_plugins_are_timed_in_a_tenth_of_cycles(chance, measured):
    got = Measured(chance=chance).schedule(POD).values
    name = "scheduler_plugin_execution_duration_seconds_count"
    assert ((name, "Filter", "NodeResourcesFit", "Success") in got) == measured
    evaluated = "scheduler_plugin_evaluation_total"
    assert got[evaluated, "Filter", "NodeResourcesFit", DEFAULT] >= 1


def test_plugins_are_timed_in_ten_cycles_per_second_at_most():
    pods = [make_pod(f"p{i}", uid=f"p{i}", requests={"cpu": "10m"}) for i in range(200)]
    cluster = Measured(chance=0.05)
    clock = cluster.meter._clock
    began = clock.now
    got = cluster.schedule(*pods).values
    timed = got[
        "scheduler_plugin_execution_duration_seconds_count", "Bind", "DefaultBinder", "Success"
    ]
    assert 1 < timed <= 1 + 10 * (clock.now - began)
    assert timed < len(pods)


def test_cached_results_count_as_hits():
    pods = [make_pod(f"p{i}", uid=f"p{i}", requests={"cpu": "10m"}) for i in range(5)]
    got = Measured().schedule(*pods).values
    assert got["moorage_view_lookups_total", DEFAULT, "miss"] == 1
    assert got["moorage_view_lookups_total", DEFAULT, "hit"] == 4
    assert got["moorage_view_rebuilds_total", DEFAULT] == 1


@pytest.mark.parametrize("point", ["PreFilter", "Filter", "Score"])
def test_points_of_repeated_decisions_are_timed(point, monkeypatch):
    repeated = []
    repeat = TemplateViews.repeat
    monkeypatch.setattr(
        TemplateViews, "repeat", lambda views: repeated.append(repeat(views)) or repeated[-1]
    )
    cluster = Measured(nodes=[f"n{i}" for i in range(8)], chance=1.0)
    pods = [make_pod(f"p{i}", uid=f"p{i}", requests={"cpu": "100m"}) for i in range(12)]
    got = cluster.schedule(*pods).values
    durations = "scheduler_framework_extension_point_duration_seconds"
    assert got[f"{durations}_count", point, DEFAULT, "Success"] == len(pods)
    assert sum(each is not None for each in repeated) > 5
    # Nothing but the clock's own steps lies between the start and the end of a repeated point.
    assert got[f"{durations}_sum", point, DEFAULT, "Success"] >= 0.001 * len(pods)


def test_measuring_changes_no_decision():
    pods = [make_pod(f"p{i}", uid=f"p{i}", requests={"cpu": f"{i}00m"}) for i in range(9)]
    plain = Measured.__new__(Measured)
    plain.scheduler, plain.now = Scheduler(config.load(None), journal=Journal()), 0.0
    for node in ("n1", "n2"):
        plain.observe(Added(make_node(node)))
    plain.schedule(*pods)
    measured = Measured().schedule(*pods)
    assert list(measured.meter.journal.lines()) == list(plain.scheduler.journal.lines())


class Measures:
    name = "Measures"

    def pre_bind(self, state, pod, node):
        state.measure("scheduler_resourceclaim_creates_total", "success")
        wait = "scheduler_dra_bindingconditions_wait_duration_seconds"
        state.measure(wait, DEFAULT, "gpu.example.com", "success", value=0.15)
        state.measure("scheduler_resourceclaim_creates_total", "one", "too many")
        state.measure("unknown_metric")
        return SUCCESS


def test_measurements_of_plugins():
    got = Measured(Measures).schedule(POD).values
    assert got["scheduler_resourceclaim_creates_total", "success"] == 1
    labels = ("gpu.example.com", DEFAULT, "success")
    name = "scheduler_dra_bindingconditions_wait_duration_seconds"
    assert got[f"{name}_sum", *labels] == 0.15
    assert got[f"{name}_bucket", labels[0], "0.1", *labels[1:]] == 0
    assert got[f"{name}_bucket", labels[0], "0.2", *labels[1:]] == 1


def test_finished_pods_leave_no_state():
    made = Measured().schedule(POD, HUGE)
    bound_elsewhere = make_pod("huge", uid="huge", requests={"cpu": "99"}, node="n1")
    assert len(made.meter.tracks) == 1
    made.observe(Updated(bound_elsewhere))
    assert len(made.meter.tracks) == 0
    made.schedule(make_pod("gone", uid="gone", requests={"cpu": "99"}))
    made.observe(Deleted(make_pod("gone", uid="gone")))
    assert len(made.meter.tracks) == 0


def test_requests_to_the_api_server():
    made = Measured()
    made.meter.host = "api:443"
    made.meter.requested("POST", 201, 0.02)
    made.meter.requested("GET", 0, 0.5)
    made.meter.requested("GET", 200, 400.0)  # a watch
    got = made.values
    assert got["rest_client_requests_total", "201", "api:443", "POST"] == 1
    assert got["rest_client_requests_total", "<error>", "api:443", "GET"] == 1
    assert got["rest_client_request_duration_seconds_count", "api:443", "GET"] == 1


def test_calls_of_the_core():
    made = Measured()
    for _ in range(FRESH + 1):  # More than are kept unsorted.
        made.meter.observed(Added(POD), 0.0002)
    made.meter.observed(Deleted(POD), 1.0)
    made.meter.called("schedule_one", 0.0002)
    for _ in range(2):  # Reading the metrics changes nothing.
        got = made.values
        assert got["scheduler_event_handling_duration_seconds_count", "UnschedulablePodAdd"] == (
            FRESH + 1
        )
        assert got["moorage_core_duration_seconds_count", "observe"] == FRESH + 2
        assert got["moorage_core_duration_seconds_bucket", "0.0002", "observe"] == FRESH + 1
        assert got["moorage_core_duration_seconds_count", "schedule_one"] == 1
    made.meter.reset()
    assert made.values["moorage_core_duration_seconds_count", "observe"] == 0


def test_leader_election():
    made = Measured()
    made.meter.election = lambda: ("kube-scheduler", True)
    assert made.values["leader_election_master_status", "kube-scheduler"] == 1


def test_reset():
    made = Measured().schedule(POD)
    made.meter.reset()
    got = made.values
    assert ("scheduler_schedule_attempts_total", DEFAULT, "scheduled") not in got
    assert got["scheduler_pod_scheduling_attempts_count",] == 0


@pytest.mark.parametrize(
    ("observation", "label"),
    [
        pytest.param(Added(make_node()), "NodeAdd", id="a node comes"),
        pytest.param(Added(POD), "UnschedulablePodAdd", id="a pod without a node"),
        pytest.param(Updated(make_pod(node="n")), "AssignedPodUpdate", id="a pod on a node"),
        pytest.param(Deleted(make_node()), "NodeDelete", id="a node goes"),
        pytest.param(Listed(type(POD), ()), "PodList", id="all pods"),
    ],
)
def test_event_labels(observation, label):
    assert meters.event_label(observation) == label


# Names, labels and buckets are looked up in kube-scheduler's documentation by dashboards.
SPEC = {
    "scheduler_schedule_attempts_total": (("result", "profile"), None),
    "scheduler_scheduling_attempt_duration_seconds": (("result", "profile"), (0.001, 2, 15)),
    "scheduler_framework_extension_point_duration_seconds": (
        ("extension_point", "status", "profile"),
        (0.0001, 2, 12),
    ),
    "scheduler_pod_scheduling_attempts": ((), (1, 2, 5)),
    "scheduler_queue_incoming_pods_total": (("queue", "event"), None),
    "scheduler_preemption_attempts_total": ((), None),
    "scheduler_preemption_victims": ((), (1, 2, 7)),
    "scheduler_pod_scheduling_sli_duration_seconds": (("attempts",), (0.01, 2, 20)),
    "scheduler_permit_wait_duration_seconds": (("result",), (0.001, 2, 15)),
    "scheduler_plugin_evaluation_total": (("plugin", "extension_point", "profile"), None),
    "scheduler_scheduling_algorithm_duration_seconds": ((), (0.001, 2, 15)),
    "scheduler_plugin_execution_duration_seconds": (
        ("plugin", "extension_point", "status"),
        (0.00001, 1.5, 20),
    ),
    "scheduler_event_handling_duration_seconds": (("event",), (0.0001, 2, 12)),
    "scheduler_pod_scheduled_after_flush_total": ((), None),
    "scheduler_resourceclaim_creates_total": (("status",), None),
    "scheduler_dra_bindingconditions_allocations_total": (("profile", "driver", "status"), None),
    "scheduler_dra_bindingconditions_wait_duration_seconds": (
        ("profile", "driver", "status"),
        (0.1, 2, 14),
    ),
    "rest_client_requests_total": (("code", "method", "host"), None),
}


@pytest.mark.parametrize("name", SPEC)
def test_names_labels_and_buckets(name):
    labels, buckets = SPEC[name]
    (tally,) = [each for each in Families() if each.name == name]
    assert tally.labels == labels
    assert isinstance(tally, Histogram) == (buckets is not None)
    if buckets is not None:
        assert tally.bounds == exponential(*buckets)


@pytest.mark.parametrize(
    ("value", "bucket"),
    [
        pytest.param(0.5, "1.0", id="below the first bound"),
        pytest.param(1, "1.0", id="a bound belongs to its bucket"),
        pytest.param(3, "4.0", id="in between"),
        pytest.param(99, "+Inf", id="beyond the last"),
    ],
)
def test_histograms(value, bucket):
    histogram = Histogram("h", "", exponential(1, 2, 3))
    histogram.observe(value)
    samples = [s for s in histogram.family().samples if s.name == "h_bucket"]
    assert next(s.labels["le"] for s in samples if s.value == 1) == bucket
    assert samples[-1].value == 1


@pytest.mark.parametrize(("cpu", "result"), [("1", "scheduled"), ("99", "unschedulable")])
def test_attempts_for_pod_groups(cpu, result):
    measured = Measured(featureGates={"GenericWorkload": True, "GangScheduling": True})
    for obj in defaults.complete(manifests.from_dicts(gang("g", 2, cpu=cpu))):
        measured.observe(Added(obj))
    got, prefix = measured.schedule().values, "scheduler_podgroup"
    assert got[f"{prefix}_schedule_attempts_total", DEFAULT, result] == 1
    assert got[f"{prefix}_scheduling_attempt_duration_seconds_count", DEFAULT, result] == 1
    assert got[f"{prefix}_scheduling_algorithm_duration_seconds_count",] == 1
