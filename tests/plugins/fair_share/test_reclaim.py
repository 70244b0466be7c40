"""Which pods FairShare evicts: none of a queue within its guarantee."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.queue_builders import node, pod, queue, settings

from moorage import explain

GPU = "example.com/gpu"


def on(name, of, at, **options):
    found = pod(name, of, **options)
    return found | {"spec": found["spec"] | {"nodeName": at}}


def victims(*objects):
    """The victims on each node, and the node that is chosen."""
    found = explain(objects, "default/new", settings())
    return found.nominated, {
        each.node: sorted(pod.name for pod in each.victims) for each in found.candidates
    }


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [
                queue("b", guaranteed={GPU: "2"}),
                node("n", 4, **{GPU: "2"}),
                *(on(f"b{i}", "b", "n", cpu="2", **{GPU: "1"}) for i in range(2)),
            ],
            ("", {}),
            id="a queue at its guarantee of another resource loses none",
        ),
        pytest.param(
            [
                queue("b", guaranteed={"cpu": "1"}),
                node("n", 4, pods="2"),
                on("b0", "b", "n", cpu="4"),
                on("b1", "b", "n", cpu="0"),
            ],
            ("n", {"n": ["b0"]}),
            id="a pod that uses nothing of what is borrowed stays",
        ),
        pytest.param(
            [
                queue("b", guaranteed={"cpu": "4"}),
                *(node("n", 4), node("m", 1)),
                on("b0", "b", "n", cpu="4"),
                on("b1", "b", "m", cpu="1"),
            ],
            ("m", {"n": ["b0"], "m": ["b1"]}),
            id="a node where the queue keeps its guarantee is preferred",
        ),
        pytest.param(
            [
                queue("b", guaranteed={"cpu": "4"}),
                node("n", 5),
                on("b0", "b", "n", cpu="4"),
                on("b1", "b", "n", cpu="1", priority=9),
            ],
            ("n", {"n": ["b1"]}),
            id="a small pod of higher priority before one that the guarantee covers",
        ),
        pytest.param(
            [
                queue("b", guaranteed={"cpu": "4"}),
                node("n", 6),
                *(on(f"b{i}", "b", "n", cpu="3") for i in range(2)),
            ],
            ("n", {"n": ["b0"]}),
            id="a pod that is borrowed in part, if there is no other",
        ),
    ],
)
def test_victims(objects, expected):
    assert victims(queue("a", guaranteed={"cpu": "2"}), *objects, pod("new", "a")) == expected


AMOUNTS = st.fixed_dictionaries({"cpu": st.integers(0, 3), GPU: st.integers(0, 1)})
GUARANTEES = st.dictionaries(st.sampled_from(["cpu", GPU]), st.integers(1, 4))
RUNNING = st.tuples(
    st.sampled_from(["b", "c"]), st.sampled_from(["n", "m"]), AMOUNTS, st.integers(0, 2)
)


def texts(amounts):
    return {resource: str(amount) for resource, amount in amounts.items()}


@given(GUARANTEES, GUARANTEES, st.lists(RUNNING, min_size=3, max_size=8))
def test_a_queue_within_its_guarantee_loses_none(of_b, of_c, running):
    guaranteed = {"b": of_b, "c": of_c}
    objects = [
        *(queue("top"), queue("a", "top", guaranteed={"cpu": "8"})),
        *(queue(name, "top", guaranteed=texts(each)) for name, each in guaranteed.items()),
        *(node(name, 4, **{GPU: "9"}) for name in ("n", "m")),
    ]
    for i, (name, at, wanted, priority) in enumerate(running):
        objects.append(on(f"p{i}", name, at, priority=priority, **texts(wanted)))
    used = {name: Counter() for name in guaranteed}
    request = {}
    new = pod("new", "a", priority=1, cpu="4")
    found = explain([*objects, new], "default/new", settings())
    for each in objects:
        if each["kind"] == "Pod":
            name = each["metadata"]["name"]
            wants = each["spec"]["containers"][0]["resources"]["requests"]
            request[name] = Counter({key: int(value) for key, value in wants.items()})
            used[each["metadata"]["labels"]["moorage.dev/queue"]] += request[name]
    for candidate in found.candidates:
        taken = {name: [] for name in guaranteed}
        for victim in candidate.victims:
            taken[victim.labels["moorage.dev/queue"]].append(request[victim.name])
        for name, limits in guaranteed.items():
            if taken[name]:
                left = used[name].copy()
                left.subtract(sum(taken[name], Counter()))
                # The queue was above its guarantee until the last of its victims was evicted.
                assert not limits or any(
                    left[r] + last[r] > limits[r] for last in taken[name] for r in limits
                )
