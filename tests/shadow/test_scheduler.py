"""ShadowScheduler: nothing leaves it, decisions are compared, and the cache follows the cluster."""

import random
import time

import pytest
from msgspec.structs import replace
from tests.storage_builders import claimed, make_class, make_free_volume, make_waiting_claim

from moorage.api import config
from moorage.api.meta import Condition
from moorage.core.observations import Added, Deleted, Updated
from moorage.errors import ConfigError
from moorage.metrics.meter import Meter
from moorage.shadow.scheduler import ShadowScheduler, shadowed
from moorage.testing import make_node, make_pod

NONE = "kubernetes.io/no-provisioner"
NOW = 1_800_000_000.0


def make(configuration=None):
    meter = Meter(time.perf_counter, random.Random(1).random, 100)
    return ShadowScheduler(configuration or config.load(None), meter)


def node(name, cpu):
    labels = {"kubernetes.io/hostname": name}
    return make_node(name, labels=labels, allocatable={"cpu": cpu, "memory": "8Gi", "pods": "110"})


def nodes(shadow, *cpus):
    for i, cpu in enumerate(cpus):
        shadow.observe(Added(node(f"n{i}", cpu)), NOW)


def pod(name, cpu="1", version="5", **more):
    made = make_pod(name, uid=f"uid-{name}", requests={"cpu": cpu}, **more)
    return replace(made, metadata=replace(made.metadata, resource_version=version))


def bound(pod, node, version="9"):
    metadata = replace(pod.metadata, resource_version=version)
    return replace(pod, spec=replace(pod.spec, node_name=node), metadata=metadata)


def schedule(shadow, at=0.0):
    while shadow.has_work:
        assert shadow.schedule_one(NOW + at) == []


def placed(scheduler):
    return {each.pod.name: each.node for each in scheduler.cache}


def check_same(shadow):
    """Both caches have the pods of the real cluster, and nothing else is kept."""
    assert placed(shadow) == placed(shadow.mirror)
    assert shadow.cache.assumed_count == 0
    assert len(shadow.bindings) == 0
    assert not shadow._open
    assert not shadow._pods
    assert shadow._kept_bytes == 0
    shadow.check_invariants()


def test_no_effect_leaves_it():
    shadow = make()
    nodes(shadow, "4")
    for i in range(6):  # Two of them fit nowhere.
        assert shadow.observe(Added(pod(f"p{i}")), NOW) == []
    schedule(shadow)
    assert shadow.advance(NOW + 60) == []
    assert shadow.cache.assumed_count == 4
    assert len(shadow.mirror.cache) == 0


def test_the_same_node():
    shadow = make()
    nodes(shadow, "4", "8")
    shadow.observe(Added(pod("p")), NOW)
    schedule(shadow, at=0.1)
    assert placed(shadow) == {"p": "n1"}
    shadow.observe(Updated(bound(pod("p"), "n1")), NOW + 0.5)
    assert dict(shadow.tally.counts) == {("same", ""): 1}
    assert shadow.tally.times("moorage")[0] == pytest.approx(0.1)
    assert shadow.tally.times("other")[0] == pytest.approx(0.5)
    check_same(shadow)


def test_a_worse_node_has_its_plugins():
    shadow = make()
    nodes(shadow, "4", "8")
    shadow.observe(Added(pod("p")), NOW)
    schedule(shadow)
    shadow.observe(Updated(bound(pod("p"), "n0")), NOW)
    (found,) = shadow.tally.examples["worse", "configuration"]
    assert (found.node, found.other_node) == ("n1", "n0")
    assert found.total - found.other_total == sum(found.plugins.values()) > 0
    assert found.deciding_plugin == "NodeResourcesFit"
    assert placed(shadow) == {"p": "n0"}
    check_same(shadow)


def test_ties_do_not_add_up():
    # Each of our decisions occupies another node than the other's; the comparison ignores ours.
    shadow = make()
    nodes(shadow, *["4"] * 10)
    for i in range(10):
        shadow.observe(Added(pod(f"p{i}")), NOW)
    schedule(shadow)
    for i in range(10):
        shadow.observe(Updated(bound(pod(f"p{i}"), f"n{i}")), NOW)
    assert shadow.tally.total == 10
    assert shadow.tally.of_verdict("worse") == 0
    check_same(shadow)


def test_bound_before_we_decided():
    shadow = make()
    nodes(shadow, "4", "8")
    shadow.observe(Added(pod("p")), NOW)
    shadow.observe(Updated(bound(pod("p"), "n1")), NOW + 1)
    assert dict(shadow.tally.counts) == {("same", ""): 1}
    assert shadow.tally.late == 1
    schedule(shadow)
    check_same(shadow)


def test_our_filters_reject_the_others_node():
    shadow = make()
    nodes(shadow, "1", "8")
    shadow.observe(Added(pod("p", cpu="2")), NOW)
    schedule(shadow)
    shadow.observe(Updated(bound(pod("p", cpu="2"), "n0")), NOW)
    (found,) = shadow.tally.examples["worse", "configuration"]
    assert found.message == "Insufficient cpu"
    assert found.other_total is None


def test_we_rejected_what_fits_now():
    shadow = make()
    nodes(shadow, "1")
    shadow.observe(Added(pod("p", cpu="2")), NOW)
    schedule(shadow)
    shadow.observe(Added(node("big", "8")), NOW)
    shadow.observe(Updated(bound(pod("p", cpu="2"), "big")), NOW)
    (found,) = shadow.tally.examples["better", "time"]
    assert found.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    check_same(shadow)


@pytest.mark.parametrize("how", ["deleted", "terminating", "ended", "replaced"])
def test_a_pod_that_goes(how):
    shadow = make()
    nodes(shadow, "4")
    shadow.observe(Added(pod("p")), NOW)
    schedule(shadow)
    p = pod("p", version="7")
    if how == "terminating":
        metadata = replace(p.metadata, deletion_timestamp="2027-01-15T08:00:00Z")
        shadow.observe(Updated(replace(p, metadata=metadata)), NOW)
        assert shadow.cache.assumed_count == 0
    if how == "ended":
        shadow.observe(Updated(replace(p, status=replace(p.status, phase="Failed"))), NOW)
    elif how == "replaced":
        new = replace(p, metadata=replace(p.metadata, uid="uid-new"))
        shadow.observe(Added(new), NOW)
        shadow.observe(Deleted(new), NOW)
    else:
        shadow.observe(Deleted(p), NOW)
    assert shadow.tally.total == 0
    check_same(shadow)


def test_the_other_rejects_what_we_placed():
    shadow = make()
    nodes(shadow, "4")
    shadow.observe(Added(pod("p")), NOW)
    schedule(shadow)
    assert shadow.tally.pending().counts == {("decided", "waiting"): 1}
    p = pod("p", version="7")
    condition = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="no")
    shadow.observe(Updated(replace(p, status=replace(p.status, conditions=(condition,)))), NOW)
    assert shadow.cache.assumed_count == 0, "its capacity is free again"
    assert shadow.tally.pending().counts == {("decided", "rejected"): 1}
    shadow.advance(NOW + 30)
    schedule(shadow, at=30)
    assert shadow.cache.assumed_count == 1, "it is decided again after the backoff"


def test_the_others_nomination_is_not_read():
    shadow = make()
    nodes(shadow, "4", "8")
    p = pod("p")
    shadow.observe(Added(replace(p, status=replace(p.status, nominated_node_name="n0"))), NOW)
    schedule(shadow)
    assert placed(shadow) == {"p": "n1"}
    shadow.observe(Updated(bound(p, "n0")), NOW)
    assert shadow.tally.counts == {("worse", "configuration"): 1}


def test_preemption_is_decided_and_not_carried_out():
    shadow = make()
    nodes(shadow, "2")
    low = bound(pod("low", cpu="2", priority=1), "n0", version="4")
    shadow.observe(Added(low), NOW)
    high = pod("high", cpu="2", priority=100)
    shadow.observe(Added(high), NOW)
    schedule(shadow)
    assert placed(shadow) == {"low": "n0"}
    shadow.observe(Deleted(low), NOW + 1)  # The other scheduler evicts it, too.
    shadow.observe(Updated(bound(high, "n0")), NOW + 1)
    assert dict(shadow.tally.counts) == {("same", ""): 1}
    check_same(shadow)


def test_volumes_are_not_bound():
    shadow = make()
    nodes(shadow, "4", "4")
    for obj in (make_class(provisioner=NONE), make_waiting_claim(), make_free_volume(on=["n0"])):
        shadow.observe(Added(obj), NOW)
    p = pod("p", volumes=(claimed("data"),))
    shadow.observe(Added(p), NOW)
    schedule(shadow)
    assert placed(shadow) == {"p": "n0"}
    shadow.observe(Updated(bound(p, "n0")), NOW)
    assert dict(shadow.tally.counts) == {("same", ""): 1}
    check_same(shadow)


def test_metrics():
    shadow = make()
    nodes(shadow, "4", "8")
    for name, node in (("p", "n1"), ("q", "n0")):
        shadow.observe(Added(pod(name)), NOW)
        schedule(shadow)
        shadow.observe(Updated(bound(pod(name), node)), NOW)
    shadow.observe(Added(pod("r")), NOW)
    text = shadow.metrics.text().decode()
    assert 'moorage_shadow_pods_total{reason="",verdict="same"} 1.0' in text
    assert 'moorage_shadow_pending_pods{moorage="waiting",other="waiting"} 1.0' in text
    assert 'moorage_shadow_decision_duration_seconds_count{scheduler="other"} 2.0' in text


# Bindings that overtake each other


def test_a_pod_that_was_decided_later_and_bound_earlier():
    shadow = make()
    nodes(shadow, "4", "4")
    shadow.observe(Updated(bound(pod("first", cpu="500m"), "n1", version="1")), NOW)
    for name in ("p", "q"):  # Decided in this order: p on n0, which is empty, then q beside it.
        shadow.observe(Added(pod(name)), NOW)
    shadow.observe(Updated(bound(pod("q"), "n0", version="6")), NOW + 0.1)
    shadow.observe(Updated(bound(pod("p"), "n0", version="7")), NOW + 0.15)
    assert ("worse", "time") in shadow.tally.counts
    assert placed(shadow.mirror) == {"first": "n1", "p": "n0", "q": "n0"}
    check_same(shadow)


def test_a_pod_that_was_bound_before_the_other_was_created():
    shadow = make()
    nodes(shadow, "4", "4")
    shadow.observe(Added(pod("q")), NOW)
    shadow.observe(Updated(bound(pod("q"), "n0", version="6")), NOW + 0.01)
    shadow.observe(Added(pod("p", version="7")), NOW + 0.02)
    shadow.observe(Updated(bound(pod("p"), "n0", version="8")), NOW + 0.03)
    assert shadow.tally.counts["worse", "configuration"] == 1
    check_same(shadow)


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [
        pytest.param(0.1, "time", id="at about the same time"),
        pytest.param(0.3, "configuration", id="too late"),
    ],
)
def test_a_pod_that_was_decided_earlier_and_bound_later(seconds, reason):
    shadow = make()
    nodes(shadow, "8", "7")
    for name, cpu in (("p", "4"), ("q", "1")):  # Decided in this order: p on n0, then q on n1.
        shadow.observe(Added(pod(name, cpu=cpu)), NOW)
    shadow.observe(Updated(bound(pod("q"), "n1", version="6")), NOW + 1)
    assert shadow.tally.total == 0, "it is not known yet why n1 was better"
    assert shadow.deadline == pytest.approx(NOW + 1.2)
    shadow.observe(Updated(bound(pod("p", cpu="4"), "n0", version="7")), NOW + 1 + seconds)
    assert shadow.tally.counts["worse", reason] == 1
    check_same(shadow)


def test_a_comparison_is_not_held_for_ever():
    shadow = make()
    nodes(shadow, "8", "7")
    for name in ("p", "q"):
        shadow.observe(Added(pod(name)), NOW)
    shadow.observe(Updated(bound(pod("q"), "n1", version="6")), NOW + 1)
    shadow.advance(NOW + 1.25)
    assert shadow.tally.counts == {("worse", "configuration"): 1}


# The configuration


def profiles(*names):
    return config.load(
        {
            "apiVersion": config.API_VERSION,
            "kind": config.KIND,
            "profiles": [{"schedulerName": name} for name in names],
        }
    )


@pytest.mark.parametrize(
    ("given", "names", "expected"),
    [
        pytest.param(["default-scheduler"], (), ["default-scheduler"], id="default"),
        pytest.param(["moorage"], (), ["default-scheduler"], id="the only profile"),
        pytest.param(["a", "b"], ("b",), ["b"], id="one of several"),
        pytest.param(["a"], ("x", "y"), ["x", "y"], id="one profile for several schedulers"),
    ],
)
def test_profiles(given, names, expected):
    made = shadowed(profiles(*given), names)
    assert [profile.scheduler_name for profile in made.profiles] == expected


def test_a_scheduler_without_a_profile():
    with pytest.raises(ConfigError, match="--scheduler-name x: there is no such profile; the prof"):
        shadowed(profiles("a", "b"), ("x",))


def test_extenders_are_refused():
    extender = config.Extender(url_prefix="http://localhost", filter_verb="filter")
    with pytest.raises(ConfigError, match="extenders: are not called"):
        shadowed(replace(config.load(None), extenders=(extender,)), ())


def test_a_sampling_configuration_is_judged_on_all_nodes():
    shadow = make(replace(config.load(None), percentage_of_nodes_to_score=5))
    assert [profile.percentage for profile in shadow.mirror.profiles.values()] == [None]
    assert [profile.percentage for profile in shadow.profiles.values()] == [5]
