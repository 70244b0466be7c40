"""Admission without an API server does what kube-apiserver did in the table of answers."""

import pytest
from tests.api.validation import table

from moorage import Simulation, explain
from moorage.api import defaults, manifests
from moorage.errors import ManifestError

ADMITTED = {
    name: case
    for name, case in table.admitted().items()
    if name.startswith("Pod: ") and "priority" not in name
}
ANSWERS = table.answers(table.ADMISSION_ANSWERS)


@pytest.mark.parametrize("name", ADMITTED)
def test_as_an_api_server(name):
    (given, obj, paths), expected = ADMITTED[name], ANSWERS[name]
    objects = manifests.from_dicts([*given, obj])
    if expected["code"] == 403:
        with pytest.raises(ManifestError) as caught:
            defaults.complete(objects)
        assert str(caught.value).partition(": ")[2] in expected["message"]
        return
    admitted = manifests.dump(defaults.complete(objects)[-1])
    paths = [path for path in paths if path != "metadata/annotations"]
    for path, value in table.shown(admitted, paths).items():
        assert as_texts(value) == as_texts(expected["shown"][path])


def as_texts(value):
    if isinstance(value, dict):
        return {key: as_texts(each) for key, each in value.items() if each}
    return str(value or "") or {}


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}
LIMITS = table.changed(
    table.base("LimitRange"),
    {"spec/limits": [{"type": "Container", "defaultRequest": {"cpu": "3"}, "max": {"cpu": "4"}}]},
)


def test_pods_of_workloads_and_later_pods_are_admitted():
    workload = table.changed(table.base("Deployment"), {"spec/replicas": 2})
    sim = Simulation([NODE, LIMITS, workload])
    sim.run()
    assert sorted(map(str, sim.placements.values())) == ["None", "n"]
    other = table.changed(LIMITS, {"metadata/namespace": "other"})
    sim = Simulation([NODE, other])
    sim.create([table.base("Pod")])
    later = table.changed(table.base("Pod"), {"metadata/namespace": "other"})
    sim.create([later, table.changed(later, {"metadata/name": "b"})])
    sim.run()
    placed = {name: node for name, node in sim.placements.items() if node}
    assert "default/a" in placed
    assert len(placed) == 2


def test_explain():
    assert "n" in explain([NODE, LIMITS, table.base("Pod")], "default/a").to_dict()["feasible"]
    wide = table.changed(LIMITS, {"spec/limits/0/defaultRequest": {"cpu": "5"}})
    wide = table.changed(wide, {"spec/limits/0/max": {"cpu": "8"}})
    assert not explain([NODE, wide, table.base("Pod")], "default/a").to_dict().get("feasible")


def test_a_pod_that_was_admitted_is_not_changed():
    pod = table.changed(table.base("Pod"), {"metadata/uid": "1"})
    [*_, completed] = defaults.complete(manifests.from_dicts([LIMITS, pod]))
    assert completed.spec.containers[0].resources.requests == {}
