"""The allocator runs once per distinct state of nodes; a run for each node by itself agrees."""

from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests import device_builders as build

from moorage.api import defaults, manifests
from moorage.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core.observations import Added, Deleted, Updated
from moorage.core.scheduler import Scheduler
from moorage.framework.registry import Registry
from moorage.framework.state import CycleState
from moorage.plugins.dynamic_resources import allocator, plan, pools, results, usage
from moorage.plugins.dynamic_resources.inventory import Inventory, NodeShape
from moorage.plugins.dynamic_resources.plan import AllocationFailed
from moorage.plugins.dynamic_resources.plugin import DEVICES, DynamicResources

REGISTRY = Registry()
NODES = ("n1", "n2", "n3", "n4")
MODELS = ("a", "b")


@st.composite
def a_device(draw: st.DrawFn, number: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if draw(st.integers(0, 5)) == 0:
        fields["taints"] = [{"key": "t", "effect": draw(st.sampled_from(["NoSchedule", "None"]))}]
    if draw(st.integers(0, 3)) == 0:
        fields["allowMultipleAllocations"] = True
    if draw(st.integers(0, 5)) == 0:
        fields["bindingConditions"] = ["Ready"]
    return build.device(
        f"d{number}",
        {"memory": draw(st.sampled_from(["4", "8"]))},
        {"model": draw(st.sampled_from(MODELS)), "numa": draw(st.integers(0, 1))},
        **fields,
    )


@st.composite
def a_slice(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """A slice of a node, of a zone, or of the whole cluster; now and then incomplete."""
    content = [draw(a_device(i)) for i in range(draw(st.integers(0, 3)))]
    if draw(st.integers(0, 9)) == 0:
        content += content[:1]  # Twice the same name: the pool is invalid.
    kind = draw(st.sampled_from(("node", "node", "node", "zone", "all")))
    where: dict[str, Any] = {"nodeName": draw(st.sampled_from(NODES))}
    pool = where["nodeName"]
    if kind == "zone":
        zone = {"key": "zone", "operator": "In", "values": [draw(st.sampled_from("xy"))]}
        where, pool = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}, name
    elif kind == "all":
        where, pool = {"allNodes": True}, draw(st.sampled_from(("net", "fabric")))
    return build.resource_slice(
        name,
        content,
        driver=draw(st.sampled_from(("gpu", "nic"))),
        pool=pool,
        count=draw(st.sampled_from((1, 1, 1, 2))),
        generation=draw(st.sampled_from((1, 1, 2))),
        **where,
    )


EXPRESSIONS = ('device.driver == "gpu"', f'device.attributes["gpu"].model == "{MODELS[0]}"')


@st.composite
def a_request(draw: st.DrawFn, name: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"count": draw(st.integers(1, 2))}
    if draw(st.integers(0, 4)) == 0:
        fields = {"allocationMode": "All"}
    if draw(st.integers(0, 4)) == 0:
        fields["adminAccess"] = True
    if draw(st.integers(0, 3)) == 0:
        fields["capacity"] = {"requests": {"memory": "4"}}
    if draw(st.booleans()):
        fields["tolerations"] = [{"operator": "Exists"}]
    chosen = [each for each in EXPRESSIONS if draw(st.integers(0, 2)) == 0]
    return build.request(name, *chosen, **fields)


@st.composite
def a_claim(draw: st.DrawFn, name: str) -> dict[str, Any]:
    requests = [draw(a_request(f"r{i}")) for i in range(draw(st.integers(1, 2)))]
    if draw(st.integers(0, 3)) == 0:
        either = [draw(a_request(f"s{i}")) for i in range(2)]
        for each in either:
            each["exactly"].pop("adminAccess", None)
        requests.append(build.first_available("either", *either))
    constraints = [{"matchAttribute": "gpu/numa"}] if draw(st.integers(0, 3)) == 0 else []
    return build.claim(name, *requests, constraints=constraints)


def plain(scheduler: Scheduler, claims: list[ResourceClaim], node: Node) -> object:
    """What the allocator finds for one node, from the objects and nothing else."""
    cluster = scheduler.cluster
    by_pool: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in cluster.all(ResourceSlice):
        by_pool.setdefault((each.spec.driver, each.spec.pool.name), []).append(each)
    models = pools.Models(have_counters=True)
    views = [pools.view(key, slices, node, models) for key, slices in by_pool.items()]
    ordered = pools.in_order(view for view in views if view is not None)
    used: dict[tuple[str, str], usage.PoolUsage] = {}
    for claim in cluster.all(ResourceClaim):
        for each in usage.of_claim(claim, are_shared=True):
            used.setdefault(each.pool, usage.PoolUsage()).add(each)
    states = [used.get(view.key, usage.PoolUsage()).state(view) for view in ordered]
    inventory = Inventory.of(NodeShape(ordered), states)
    classes = {each.name: each for each in cluster.all(DeviceClass)}
    compiled = plan.compile_claims([claim.spec.devices for claim in claims], classes)
    try:
        found = allocator.allocate(compiled, inventory, 1e6)
    except AllocationFailed as failed:
        return "error", failed.failure.render([claim.key for claim in claims], ordered)
    except allocator.InvalidPools:
        return "invalid resource pools were encountered"
    if found is None:
        return "cannot allocate all claims"
    return [
        results.allocation(claim, own, chosen, ordered, node.name)
        for claim, own, chosen in zip(claims, compiled.claims, found, strict=True)
    ]


def shared(scheduler: Scheduler, pod: Pod, node: Node, state: CycleState) -> object:
    """What the plugin finds for a node, by either form of its filter."""
    plugin = DynamicResources()
    table = scheduler.cluster.table
    row = table.row_of[node.name]
    verdicts = plugin.filter_all(state, pod, table)
    status = verdicts.status_of(int(verdicts.codes[row]))
    try:
        one = plugin.filter(state, pod, table.info(row))
    except Exception as failure:
        assert status.code.label == "Error"
        return "error", str(failure)
    if not one.is_success:
        assert status == one
        return one.message
    assert verdicts.codes[row] == 0
    return [allocation for _, allocation in state[DEVICES].allocations(node)]


def check(scheduler: Scheduler, pod: Pod, claims: list[ResourceClaim]) -> list[object]:
    cluster = scheduler.cluster
    state = CycleState.of(cluster, scheduler.templates.of(pod))
    assert DynamicResources().pre_filter(state, pod).is_success
    found = []
    for node in (cluster.table.node(name) for name in NODES):
        if node is not None:
            found.append(plain(scheduler, claims, node))
            assert shared(scheduler, pod, node, state) == found[-1]
    return found


@settings(max_examples=150, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(data=st.data())
def test_a_node_by_itself_finds_the_same(data: st.DataObject) -> None:
    scheduler = Scheduler(registry=REGISTRY)
    objects = [build.node(name, zone="xy"[i % 2]) for i, name in enumerate(NODES)]
    objects += [build.device_class("gpu")]
    for obj in defaults.complete(manifests.from_dicts(objects)):
        scheduler.observe(Added(obj), 0.0)
    slices: dict[str, ResourceSlice] = {}
    taken: dict[str, ResourceClaim] = {}
    for step in range(data.draw(st.integers(2, 6), label="steps")):
        names = [f"s{i}" for i in range(4)]
        wanted = data.draw(a_slice(data.draw(st.sampled_from(names))), label="slice")
        [published] = defaults.complete(manifests.from_dicts([wanted]))
        assert isinstance(published, ResourceSlice)
        known = published.name in slices
        scheduler.observe((Updated if known else Added)(published), 0.0)
        slices[published.name] = published
        if data.draw(st.integers(0, 5)) == 0:
            gone = data.draw(st.sampled_from(sorted(slices)))
            scheduler.observe(Deleted(slices.pop(gone)), 0.0)
        if data.draw(st.integers(0, 5)) == 0:
            name = data.draw(st.sampled_from(NODES))
            moved = build.node(name, zone=data.draw(st.sampled_from("xy")))
            [changed] = defaults.complete(manifests.from_dicts([moved]))
            scheduler.observe(Updated(changed), 0.0)
        # Ask, and give the devices of the first node that fits to the claims of a step.
        made = [data.draw(a_claim(f"c{step}-{i}")) for i in range(data.draw(st.integers(1, 2)))]
        claims = defaults.complete(manifests.from_dicts(made))
        keys = [claim.name for claim in claims]
        [pod] = defaults.complete(manifests.from_dicts([build.pod("p", *keys)]))
        assert isinstance(pod, Pod)
        own = [claim for claim in claims if isinstance(claim, ResourceClaim)]
        for claim in own:
            scheduler.observe(Added(claim), 0.0)
        found = next((each for each in check(scheduler, pod, own) if isinstance(each, list)), None)
        for claim, allocation in zip(own, found or [], strict=False):
            status = type(claim.status)(allocation=allocation)
            taken[claim.key] = given_to = replace(claim, status=status)
            scheduler.observe(Updated(given_to), 0.0)
        if taken and data.draw(st.integers(0, 3)) == 0:
            key = data.draw(st.sampled_from(sorted(taken)))
            scheduler.observe(Deleted(taken.pop(key)), 0.0)
