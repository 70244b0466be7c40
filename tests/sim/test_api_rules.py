"""What an API server forbids about pods and priority classes; numbers are rows of the spec."""

import pytest

from moorage import Simulation
from moorage.cluster.status_errors import ForbiddenError, InvalidError


def priority_class(name, value=1000, **fields):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }


DEFAULT = {"globalDefault": True}
SECOND = (
    'priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass a is already marked as '
    "default. Only one default can exist"
)


def test_59_a_second_default_is_refused_on_create():
    sim = Simulation([priority_class("a", **DEFAULT)])
    with pytest.raises(ForbiddenError) as refused:
        sim.create([priority_class("b", **DEFAULT)])
    assert (str(refused.value), refused.value.code) == (SECOND, 403)
    sim.create([priority_class("b")])


def test_59_and_on_update_of_another_class():
    sim = Simulation([priority_class("a", **DEFAULT), priority_class("b")])
    with pytest.raises(ForbiddenError) as refused:
        sim.update(priority_class("b", **DEFAULT))
    assert str(refused.value) == SECOND
    sim.update(priority_class("a", description="still the default", **DEFAULT))


def test_56_two_that_came_about_in_a_race_are_lived_with():
    sim = Simulation([priority_class("b", 2000, **DEFAULT), priority_class("a", 1000, **DEFAULT)])
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    sim.create([pod])
    assert sim.read("Pod", "default", "p")["spec"]["priority"] == 1000
    sim.delete("PriorityClass", "", "a")
    sim.create([{**pod, "metadata": {"name": "q"}}])
    assert sim.read("Pod", "default", "q")["spec"]["priority"] == 2000
    assert sim.read("Pod", "default", "p")["spec"]["priority"] == 1000


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        pytest.param(
            {"value": 2000}, "value: Forbidden: may not be changed in an update.", id="the value"
        ),
        pytest.param(
            {"preemptionPolicy": "Never"},
            'preemptionPolicy: Invalid value: "Never": field is immutable',
            id="the policy",
        ),
        pytest.param({"description": "new"}, "", id="words may change"),
    ],
)
def test_updates(change, refusal):
    sim = Simulation([priority_class("a", preemptionPolicy="PreemptLowerPriority")])
    new = {**priority_class("a", preemptionPolicy="PreemptLowerPriority"), **change}
    if not refusal:
        sim.update(new)
        return
    with pytest.raises(InvalidError, match=refusal):
        sim.update(new)


def test_classes_of_the_system_stay():
    sim = Simulation([priority_class("system-node-critical", 2000001000)])
    with pytest.raises(
        ForbiddenError, match="this is a system priority class and cannot be deleted"
    ):
        sim.delete("PriorityClass", "", "system-node-critical")


# Pods


def pod(**spec):
    containers = [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": containers, "schedulerName": "none", **spec},
    }


GATES = [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        pytest.param({"nodeName": "n"}, "nodeName", id="only a binding sets the node"),
        pytest.param({"hostNetwork": True}, "pod updates may not change", id="host network"),
        pytest.param({"schedulingGates": GATES[:1]}, "", id="gates can be removed"),
        pytest.param({"schedulingGates": [{"name": "c"}]}, "only deletion", id="and not added"),
    ],
)
def test_updates_of_a_pod(change, refusal):
    sim = Simulation([pod(schedulingGates=GATES)])
    if not refusal:
        sim.update(pod(schedulingGates=GATES) | {"spec": pod(**change)["spec"]})
        return
    with pytest.raises(InvalidError, match=refusal):
        sim.update(pod(**{"schedulingGates": GATES, **change}))


def test_resources_of_a_pod_may_change():
    sim = Simulation([pod()])
    new = pod()
    new["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    sim.update(new)
    (container,) = sim.read("Pod", "default", "p")["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "2"}
