"""How many gangs of a shape fit."""

import pytest
from tests.group_builders import gang, group, node, pod, settings

from moorage.api import manifests
from moorage.errors import InputError
from moorage.planning.gangs import gang_capacity, is_gang

RACK = "example.com/rack"
ONE_RACK = {"schedulingConstraints": {"topology": [{"key": RACK}]}}


def racks(**counts):
    return [node(f"{name}-{i}", **{RACK: name}) for name, n in counts.items() for i in range(n)]


def member(cpu="1", **spec):
    return pod("worker", "train", cpu, **spec)


@pytest.mark.parametrize(
    ("size", "fits"),
    [
        pytest.param(4, 4, id="all of the room is used"),
        pytest.param(5, 3, id="one pod of a gang is left"),
        pytest.param(16, 1, id="all nodes are needed"),
        pytest.param(17, 0, id="more than the cluster has"),
    ],
)
def test_whole_gangs_are_counted(size, fits):
    found = gang_capacity(racks(a=2, b=2), pod("worker"), size=size)
    assert (found.fits, sum(found.nodes.values())) == (fits, fits * size)
    rest = 16 - fits * size
    assert found.message == f"needs {size} pods, and at most {rest} of {size} pending members fit"


def test_the_shape_is_that_of_the_pod_group():
    objects = [*racks(a=2, b=2), group("train", 3, **ONE_RACK)]
    found = gang_capacity(objects, member())
    assert (found.shape.size, found.shape.topology_key) == (3, RACK)
    assert found.placements == {"a": 2, "b": 2}, "eight pods fit in a rack"
    assert found.fits == 4
    assert found.next is not None
    assert [each.fit for each in found.next.placements] == [2, 2]


def test_a_number_overrides_the_pod_group():
    objects = [*racks(a=2, b=2), group("train", 3, **ONE_RACK)]
    assert gang_capacity(objects, member(), size=9).fits == 0
    assert gang_capacity(objects, member(), size=8).fits == 2


def test_the_template_of_a_workload():
    templates = [{"name": "t", "schedulingPolicy": {"gang": {"minCount": 5}}, **ONE_RACK}]
    workload = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "Workload",
        "metadata": {"name": "w"},
        "spec": {"podGroupTemplates": templates},
    }
    found = gang_capacity([*racks(a=2, b=1), workload], pod("worker"))
    assert (found.shape.size, found.fits, found.placements) == (5, 1, {"a": 1})
    two = {**workload, "spec": {"podGroupTemplates": [*templates, {**templates[0], "name": "u"}]}}
    with pytest.raises(InputError, match=r"several podGroupTemplates \(t, u\)"):
        gang_capacity([*racks(a=2), two], pod("worker"))


def test_pending_pods_are_placed_first():
    found = gang_capacity([*racks(a=2), *gang("other", 5)], pod("worker"), settings(), size=3)
    assert (found.placed_before, found.fits) == (5, 1)


def test_counting_stops_at_a_limit():
    found = gang_capacity(racks(a=2), pod("worker"), size=2, most=3)
    assert (found.fits, found.is_limited, found.next, found.message) == (3, True, None, "")


def test_a_queue_limits_gangs():
    from tests.queue_builders import PLUGINS, queue

    config = {**settings(), "profiles": [{"plugins": PLUGINS}]}
    limited = pod("worker")
    limited["metadata"]["labels"] = {"moorage.dev/queue": "a"}
    objects = [*racks(a=4), queue("a", max={"cpu": "7"})]
    found = gang_capacity(objects, limited, config, size=3)
    assert found.fits == 2
    assert found.next is not None
    assert 'queue "a" is at its maximum of cpu' in found.next.lines[0]


def test_the_size_has_to_be_known():
    with pytest.raises(InputError, match="the size of a gang is not known"):
        gang_capacity(racks(a=1), pod("worker"))
    with pytest.raises(InputError, match="PodGroup default/train: is no gang"):
        gang_capacity([*racks(a=1), group("train")], member())
    with pytest.raises(InputError, match="minCount: must be at most 10000 to be counted, is 2000"):
        gang_capacity([*racks(a=1), group("train", 2_000_000_000)], member())


def test_plain_data():
    plain = gang_capacity([*racks(a=1), group("train", 3, **ONE_RACK)], member()).to_dict()
    assert plain["gang"] == {"size": 3, "topologyKey": RACK}
    assert (plain["fits"], plain["placements"]) == (1, {"a": 1})
    assert plain["next"]["placements"][0]["moreNodes"] == {"nodes": 1, "like": "a-0"}


@pytest.mark.parametrize(("count", "expected"), [(3, True), (None, False)])
def test_which_pods_are_of_a_gang(count, expected):
    objects = manifests.read([group("train", count), member()]).everything
    assert is_gang(objects[-1], objects) == expected
    assert not is_gang(manifests.read([pod("alone")]).everything[0], objects)
