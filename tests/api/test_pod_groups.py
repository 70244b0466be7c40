"""Pod groups and workloads: how they are read, completed and validated."""

import pytest

from moorage.api import defaults, manifests
from moorage.api.manifests import strict
from moorage.api.pod_groups import PodGroup, Workload, group_key
from moorage.errors import ManifestError

VERSION = "scheduling.k8s.io/v1alpha2"
GANG = {"schedulingPolicy": {"gang": {"minCount": 4}}}
CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "batch"},
    "value": 70,
}


def group(kind="PodGroup", **spec):
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": "train"}, "spec": spec}


def read(*documents):
    return manifests.read(documents).everything


def test_a_gang():
    [gang] = defaults.complete(read(group(**GANG)))
    assert isinstance(gang, PodGroup)
    assert (gang.key, gang.min_count, gang.priority) == ("default/train", 4, 0)
    assert gang.spec.disruption_mode == "Pod"


def test_a_basic_group_has_no_quorum():
    [basic] = read(group(schedulingPolicy={"basic": {}}))
    assert basic.min_count is None


def test_the_priority_comes_from_the_class():
    [gang, _] = defaults.complete(read(group(**GANG, priorityClassName="batch"), CLASS))
    assert gang.priority == 70


def test_a_class_that_does_not_exist():
    with pytest.raises(
        ManifestError, match=r"PodGroup default/train, spec.priorityClassName: no Pr"
    ):
        defaults.complete(read(group(**GANG, priorityClassName="batch")))


def test_a_workload_is_read_for_its_errors_only():
    [workload] = read(group("Workload", podGroupTemplates=[{"name": "workers", **GANG}]))
    assert isinstance(workload, Workload)


def test_the_group_of_a_pod():
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "ml"}}
    spec = {"containers": [{"name": "c"}]}
    [member] = read({**pod, "spec": {**spec, "schedulingGroup": {"podGroupName": "train"}}})
    [other] = read({**pod, "spec": spec})
    assert (group_key(member), group_key(other)) == ("ml/train", "")
    with pytest.raises(ManifestError, match=r"spec.schedulingGroup.podGroupName: Required value"):
        read({**pod, "spec": {**spec, "schedulingGroup": {}}})


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param(
            {},
            (
                'spec.schedulingPolicy: Invalid value: "": exactly one of `basic` or `gang` is '
                "required"
            ),
            id="no policy",
        ),
        pytest.param(
            {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}},
            (
                'spec.schedulingPolicy: Invalid value: "": exactly one of `basic` or `gang` is '
                "required"
            ),
            id="two policies",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            (
                "spec.schedulingPolicy.gang.minCount: Invalid value: 0: must be greater than "
                "or equal to 1"
            ),
            id="an empty gang",
        ),
        pytest.param(
            {**GANG, "schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            ("spec.schedulingConstraints.topology: Invalid value: 2: must have at most 1 items"),
            id="two topology constraints",
        ),
        pytest.param(
            {**GANG, "disruptionMode": "Gang"},
            ('spec.disruptionMode: Invalid value: "Gang": supported values: "Pod", "PodGroup"'),
            id="an unknown mode",
        ),
        pytest.param(
            {**GANG, "priority": 2_000_000_000},
            ("spec.priority: Invalid value: 2000000000: must be less than or equal to 1000000000"),
            id="a priority of the system",
        ),
        pytest.param(
            {**GANG, "resourceClaims": [{"name": "gpu"}]},
            (
                'spec.resourceClaims[0]: Invalid value: "": exactly one of `resourceClaimName` '
                "or `resourceClaimTemplateName` is required"
            ),
            id="a claim without a name",
        ),
    ],
)
def test_invalid_groups(spec, problem):
    with pytest.raises(ManifestError) as caught:
        read(group(**spec))
    assert problem in str(caught.value)


def test_unknown_fields():
    spec = {**GANG, "schedulingPolicy": {"gang": {"mincount": 3}}}
    [(path, problem)] = strict.document_errors(group(**spec))
    assert path == "spec.schedulingPolicy.gang.mincount"
    assert problem == 'unknown field; did you mean "minCount"?'


@pytest.mark.parametrize(
    ("templates", "problem"),
    [
        pytest.param([], "spec.podGroupTemplates: Required value", id="none"),
        pytest.param(
            [{"name": f"t{i}", **GANG} for i in range(9)], "must have at most 8", id="nine"
        ),
        pytest.param([{"name": "t", **GANG}] * 2, '"t": Duplicate value', id="twice"),
    ],
)
def test_invalid_workloads(templates, problem):
    with pytest.raises(ManifestError) as caught:
        read(group("Workload", podGroupTemplates=templates))
    assert problem in str(caught.value)
