"""Queues with devices of claims: limits, guarantees and shares by DeviceClass."""

import pytest
from tests.queue_builders import node, pod, queue, settings

from moorage import Simulation
from moorage.api.pod import Pod
from moorage.plugins.fair_share.tree import QueueTree

GPU, LARGE = "gpu.example.com", "large.example.com"
RESOURCE = "resource.k8s.io/v1"


def device_class(name, *expressions):
    selectors = [{"cel": {"expression": each}} for each in expressions]
    spec = {"selectors": [{"cel": {"expression": f'device.driver == "{GPU}"'}}, *selectors]}
    return {"apiVersion": RESOURCE, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


CLASSES = [device_class(GPU), device_class(LARGE, f'device.attributes["{GPU}"].size > 40')]


def gpus(name, sizes):
    """The GPUs of a node."""
    devices = [
        {"name": f"gpu-{i}", "attributes": {"size": {"int": s}}} for i, s in enumerate(sizes)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": GPU, "nodeName": name, "pool": pool, "devices": devices}
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": spec,
    }


def request(name=GPU, count=1, **more):
    return {"name": "gpus", "exactly": {"deviceClassName": name, "count": count, **more}}


def claim(name, *requests, kind="ResourceClaim"):
    spec = {"devices": {"requests": list(requests)}}
    spec = spec if kind == "ResourceClaim" else {"spec": spec}
    return {"apiVersion": RESOURCE, "kind": kind, "metadata": {"name": name}, "spec": spec}


def template(name, *requests):
    return claim(name, *requests, kind="ResourceClaimTemplate")


def claiming(name, queue, template="", claim="", **options):
    """A pod with a claim: one of its own, or one that exists."""
    made = pod(name, queue, **options)
    source = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
    made["spec"]["resourceClaims"] = [{"name": "gpus", **source}]
    return made


def start(*objects, sizes=(24, 24, 80, 80), nodes=2, **options):
    made = [node(f"node-{i}", 16) for i in range(nodes)]
    slices = [gpus(f"node-{i}", sizes) for i in range(nodes)]
    config = settings()
    return Simulation([*CLASSES, *made, *slices, *objects], config=config, **options)


def placed(sim, prefix=""):
    return sorted(
        each.name
        for each in sim.cluster.all(Pod)
        if each.node_name and each.name.startswith(prefix)
    )


def used(sim, name, resource=GPU):
    tree = QueueTree(sim.scheduler.cluster)
    tree.refresh()
    kept = sim.scheduler.cluster.derived(QueueTree)
    kept.refresh()
    assert {r: n for r, n in kept.queues[name].used.items() if n} == {
        r: n for r, n in tree.queues[name].used.items() if n
    }
    return tree.queues[name].used.get(resource, 0)


def message(sim, name):
    conditions = sim.read("Pod", "default", name)["status"]["conditions"]
    return next(each["message"] for each in conditions if each["type"] == "PodScheduled")


def test_a_queue_has_no_more_devices_than_its_maximum():
    pods = [claiming(f"a-{i}", "a", "two") for i in range(3)]
    sim = start(queue("a", max={GPU: 5}), template("two", request(count=2)), *pods)
    sim.run()
    assert (len(placed(sim)), used(sim, "a")) == (2, 4)
    [waiting] = {"a-0", "a-1", "a-2"} - {*placed(sim)}
    assert f'queue "a" is at its maximum of {GPU}' in message(sim, waiting)
    sim.delete("Pod", "default", placed(sim)[0])
    sim.run()
    assert waiting in placed(sim)


def test_the_devices_of_children_count_for_the_parent():
    queues = [queue("org", max={GPU: 3}), queue("a", "org"), queue("b", "org")]
    pods = [claiming(f"{name}-{i}", name, "one") for name in "ab" for i in range(3)]
    sim = start(*queues, template("one", request()), *pods)
    sim.run()
    assert (len(placed(sim)), used(sim, "org")) == (3, 3)


def test_each_class_has_a_limit_of_its_own():
    made = [template("large", request(LARGE)), template("any", request())]
    pods = [claiming(f"l-{i}", "a", "large") for i in range(3)]
    others = [claiming(f"o-{i}", "a", "any") for i in range(3)]
    sim = start(queue("a", max={LARGE: 1, GPU: 2}), *made, *pods, *others)
    sim.run()
    assert (len(placed(sim, "l")), len(placed(sim, "o"))) == (1, 2)


def test_a_claim_that_pods_share_counts_once():
    shared = [claiming(f"a-{i}", "a", claim="shared") for i in range(3)]
    sim = start(queue("a", max={GPU: 2}), claim("shared", request(count=2)), *shared)
    sim.run()
    assert (len(placed(sim)), used(sim, "a")) == (3, 2)
    for name in ("a-0", "a-1"):
        sim.delete("Pod", "default", name)
    sim.run()
    assert used(sim, "a") == 2
    sim.delete("Pod", "default", "a-2")
    sim.run()
    assert used(sim, "a") == 0


def test_the_alternative_that_is_allocated_counts():
    choices = [
        {"name": "large", "deviceClassName": LARGE, "count": 2},
        {"name": "small", "deviceClassName": GPU, "count": 1},
    ]
    first = template("first", {"name": "gpus", "firstAvailable": choices})
    sim = start(queue("a"), first, claiming("a-0", "a", "first"), sizes=(24, 24), nodes=1)
    sim.run()
    assert placed(sim) == ["a-0"]
    assert (used(sim, "a"), used(sim, "a", LARGE)) == (1, 0)


@pytest.mark.parametrize(
    ("limits", "count"),
    [pytest.param({GPU: 8}, 0, id="limited"), pytest.param({}, 1, id="without a limit")],
)
def test_a_request_for_all_devices_cannot_be_counted_in_advance(limits, count):
    every = template(
        "all", {"name": "g", "exactly": {"deviceClassName": GPU, "allocationMode": "All"}}
    )
    sim = start(queue("a", max=limits), every, claiming("a-0", "a", "all"))
    sim.run()
    assert len(placed(sim)) == count
    if count:
        assert used(sim, "a") == 4
    else:
        expected = f'queue "a" has a maximum of {GPU}, and the pod requests all devices of a node'
        assert expected in message(sim, "a-0")


def test_devices_for_administrators_do_not_count():
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "default",
            "labels": {"resource.kubernetes.io/admin-access": "true"},
        },
    }
    admin = template("admin", request(count=2, adminAccess=True))
    sim = start(namespace, queue("a", max={GPU: 1}), admin, claiming("a-0", "a", "admin"))
    sim.run()
    assert (placed(sim), used(sim, "a")) == (["a-0"], 0)


def test_the_dominant_share_is_that_of_devices():
    """Eight GPUs: `a` asks for one and little CPU, `b` for CPU only; weights 1:1."""
    made = [queue("a"), queue("b"), template("one", request())]
    pods = [claiming(f"a-{i}", "a", "one", cpu="100m") for i in range(8)]
    others = [pod(f"b-{i}", "b", cpu="4") for i in range(4)]
    sim = start(*made, *pods, *others)
    sim.run()
    tree = sim.scheduler.cluster.derived(QueueTree)
    tree.refresh()
    assert tree.totals[GPU] == 8
    assert tree.totals[LARGE] == 4
    assert tree.queues["a"].share(tree.totals) == 1.0
    [a, b] = sim.result.queues
    assert (a.share, b.share) == (1.0, tree.queues["b"].share(tree.totals))


def test_devices_are_divided_by_weight():
    """Pods of one device each, in the order of weighted shares: 2:1 of nine."""
    made = [queue("a", weight=2), queue("b"), template("one", request())]
    pods = [claiming(f"{name}-{i}", name, "one", cpu="10m") for name in "ab" for i in range(9)]
    sim = start(*made, *pods, sizes=(24,) * 3, nodes=3)
    sim.run()
    assert (len(placed(sim, "a")), len(placed(sim, "b"))) == (6, 3)


def test_guaranteed_devices_come_first():
    made = [queue("a", guaranteed={GPU: 4}), queue("b", weight=9), template("one", request())]
    pods = [claiming(f"{name}-{i}", name, "one", cpu="10m") for name in "ba" for i in range(8)]
    sim = start(*made, *pods, sizes=(24,) * 5, nodes=1)
    sim.run()
    assert (len(placed(sim, "a")), len(placed(sim, "b"))) == (4, 1)


def test_usage_is_exact_after_a_restart():
    pods = [claiming(f"a-{i}", "a", "two") for i in range(2)]
    sim = start(queue("a"), template("two", request(count=2)), *pods)
    sim.run()
    again = Simulation(sim.objects, config=settings())
    again.create([claiming("a-9", "a", "two")])
    again.run()
    assert used(again, "a") == 6
    assert again.result.queues[0].share == 0.75
