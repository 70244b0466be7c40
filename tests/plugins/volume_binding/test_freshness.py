"""What a scheduler knows of volumes never outlives a change of them, whatever is kept."""

import pytest
from msgspec.structs import replace
from tests.storage_builders import (
    HOSTNAME,
    claimed,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_free_volume,
    make_volume,
    make_waiting_claim,
    reaching,
)

from moorage.api import csi_migration
from moorage.api.storage import GCEDiskSource, TopologySelectorLabel, TopologySelectorTerm
from moorage.core.observations import Added, Deleted, Updated
from moorage.core.scheduler import Scheduler
from moorage.testing import make_node, make_pod

BY_HAND = make_class(provisioner="kubernetes.io/no-provisioner")
POD = make_pod(volumes=(claimed("data"),))


def feasible(scheduler):
    """The feasible nodes, computed with all caches of a scheduler."""
    profile, template = scheduler.profiles["default-scheduler"], scheduler.templates.of(POD)
    decision = scheduler.cycle.decide(profile, POD, template, 0.0)
    if decision.filtered is None:
        return []
    table = scheduler.cluster.table
    return sorted(name for name, row in table.row_of.items() if decision.filtered.fits[row])


def what_if_key(scheduler):
    profile, template = scheduler.profiles["default-scheduler"], scheduler.templates.of(POD)
    decision = scheduler.cycle.decide(profile, POD, template, 0.0)
    return scheduler.cycle._what_if(decision).key


def scheduler_with(*objects):
    scheduler = Scheduler()
    nodes = [make_node(n, labels={HOSTNAME: n, "topology.gke.io/zone": n}) for n in ("n1", "n2")]
    for obj in (*nodes, *objects):
        scheduler.observe(Added(obj), 0.0)
    return scheduler


def newer(obj, version="9"):
    return replace(obj, metadata=replace(obj.metadata, resource_version=version))


def moved(*names):
    return newer(make_volume(node_affinity=reaching(HOSTNAME, *names)))


def only_on(name):
    label = TopologySelectorLabel(key=HOSTNAME, values=(name,))
    return (TopologySelectorTerm(match_label_expressions=(label,)),)


BOUND = [make_claim(volume="pv"), make_volume(node_affinity=reaching(HOSTNAME, "n1"))]
OLD_DISK = make_volume(
    gce_persistent_disk=GCEDiskSource(pd_name="disk"), labels={csi_migration.ZONE: "n1"}
)
SERVED = {csi_migration.MIGRATED_PLUGINS: csi_migration.GCE}
SERVING = replace(
    make_csi_node("n2"), metadata=replace(make_csi_node("n2").metadata, annotations=SERVED)
)
ACCOUNTS = [make_class(), make_waiting_claim(), make_driver(), make_capacity(on={HOSTNAME: "n1"})]


@pytest.mark.parametrize(
    ("objects", "before", "change", "after"),
    [
        pytest.param(BOUND, ["n1"], Updated(moved("n2")), ["n2"], id="a volume moves"),
        pytest.param(BOUND, ["n1"], Deleted(BOUND[1]), [], id="a volume goes"),
        pytest.param(BOUND[:1], [], Added(BOUND[1]), ["n1"], id="a volume comes"),
        pytest.param(
            [*BOUND, make_volume("other", node_affinity=reaching(HOSTNAME, "n2"))],
            ["n1"],
            Updated(newer(make_claim(volume="other"))),
            ["n2"],
            id="a claim is bound to another",
        ),
        pytest.param(BOUND, ["n1"], Deleted(BOUND[0]), [], id="a claim goes"),
        pytest.param(
            [BY_HAND, make_waiting_claim()],
            [],
            Added(make_free_volume(on=["n2"])),
            ["n2"],
            id="a free volume comes",
        ),
        pytest.param(
            [BY_HAND, make_waiting_claim(), make_free_volume(on=["n2"])],
            ["n2"],
            Updated(make_free_volume(on=["n2"], phase="Bound", version="9")),
            [],
            id="a free volume is taken",
        ),
        pytest.param(
            [BY_HAND, make_waiting_claim()],
            [],
            Updated(newer(make_class())),
            ["n1", "n2"],
            id="a class makes volumes at last",
        ),
        pytest.param(
            [make_class(), make_waiting_claim()],
            ["n1", "n2"],
            Updated(newer(replace(make_class(), allowed_topologies=only_on("n2")))),
            ["n2"],
            id="a class makes them elsewhere",
        ),
        pytest.param(
            ACCOUNTS,
            ["n1"],
            Updated(newer(make_driver(storage_capacity=False))),
            ["n1", "n2"],
            id="a driver stops to keep accounts",
        ),
        pytest.param(
            ACCOUNTS,
            ["n1"],
            Updated(newer(make_capacity(on={HOSTNAME: "n2"}))),
            ["n2"],
            id="capacity moves",
        ),
        pytest.param(
            ACCOUNTS,
            ["n1"],
            Updated(newer(make_capacity(capacity="1Mi", on={HOSTNAME: "n1"}))),
            [],
            id="capacity is used up",
        ),
        pytest.param(
            [make_claim(volume="pv"), OLD_DISK],
            ["n1", "n2"],
            Added(SERVING),
            ["n1"],
            id="a node serves old disks through CSI",
        ),
        pytest.param(
            BOUND,
            ["n1"],
            Updated(newer(make_node("n2", labels={HOSTNAME: "n1"}))),
            ["n1", "n2"],
            id="a node changes its labels",
        ),
        pytest.param(
            [BY_HAND, make_waiting_claim(), make_free_volume(on=["n1"])],
            ["n1"],
            Added(make_node("n3", labels={HOSTNAME: "n1"})),
            ["n1", "n3"],
            id="a node comes",
        ),
    ],
)
def test_a_change_is_seen_at_once(objects, before, change, after):
    scheduler = scheduler_with(*objects)
    assert feasible(scheduler) == before
    assert feasible(scheduler) == before  # From what is kept.
    scheduler.observe(change, 0.0)
    assert feasible(scheduler) == after


def test_what_is_assumed_and_given_up_is_seen_at_once():
    free = make_free_volume(on=["n1"])
    scheduler = scheduler_with(BY_HAND, make_waiting_claim(), free)
    assert feasible(scheduler) == ["n1"]
    taken = make_free_volume(on=["n1"], phase="Bound")
    scheduler.cluster.assume(taken, "somebody")
    assert feasible(scheduler) == []
    scheduler.cluster.restore(taken)
    assert feasible(scheduler) == ["n1"]


def test_an_assumed_change_invalidates_what_if_results():
    scheduler = scheduler_with(BY_HAND, make_waiting_claim(), make_free_volume())
    keys = [what_if_key(scheduler)]
    scheduler.cluster.assume(make_free_volume(phase="Bound"), "somebody")
    keys.append(what_if_key(scheduler))
    scheduler.cluster.restore(make_free_volume(phase="Bound"))
    keys.append(what_if_key(scheduler))
    assert len(set(keys)) == 3
