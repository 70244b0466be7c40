"""Queues and elastic quotas: how they are read and validated."""

import pytest

from moorage.api import manifests
from moorage.api.manifests import strict
from moorage.api.queues import ElasticQuota, Queue, queue_name
from moorage.errors import ManifestError
from moorage.testing import make_pod


def queue(**spec):
    version = "scheduling.moorage.dev/v1alpha1"
    return {"apiVersion": version, "kind": "Queue", "metadata": {"name": "team"}, "spec": spec}


def quota(**spec):
    version = "scheduling.x-k8s.io/v1alpha1"
    meta = {"name": "quota", "namespace": "ml"}
    return {"apiVersion": version, "kind": "ElasticQuota", "metadata": meta, "spec": spec}


def read(*documents):
    return manifests.read(documents).everything


def test_a_queue():
    [found] = read(queue(parent="org", guaranteed={"cpu": "4"}, max={"nvidia.com/gpu": 2}))
    assert isinstance(found, Queue)
    assert (found.key, found.spec.parent, found.spec.weight) == ("team", "org", 1)


def test_an_elastic_quota():
    [found] = read(quota(min={"cpu": 4}, max={"cpu": 8}))
    assert isinstance(found, ElasticQuota)
    assert found.key == "ml/quota"


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (queue(weight=0), ("spec.weight: Invalid value: 0: must be greater than or equal to 1")),
        (queue(parent="team"), 'spec.parent: Invalid value: "team": must be another queue'),
        (queue(parent="a b"), "spec.parent: "),
        (queue(guaranteed={"cpu": "4x"}), "spec.guaranteed.cpu: "),
        (
            queue(max={"cpu": "-1"}),
            ('spec.max.cpu: Invalid value: "-1": must be greater than or equal to 0'),
        ),
        (queue(max={"a b": 1}), "spec.max[a b]: "),
        (
            queue(guaranteed={"cpu": "3"}, max={"cpu": "2500m"}),
            (
                'spec.guaranteed[cpu]: Invalid value: "3": must be less than or equal to '
                "spec.max (2500m)"
            ),
        ),
        (
            quota(min={"pods": 3}, max={"pods": 2}),
            "spec.min[pods]: Invalid value: 3: must be less than or equal to spec.max (2)",
        ),
    ],
)
def test_bad_objects_are_one_line(document, problem):
    with pytest.raises(ManifestError) as raised:
        read(document)
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_misspelt_field():
    [(path, problem)] = strict.document_errors(queue(guarantee={"cpu": 1}))
    assert path == "spec.guarantee"
    assert "guaranteed" in problem


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({}, ""),
        ({"moorage.dev/queue": "a", "kueue.x-k8s.io/queue-name": "b"}, "a"),
        ({"kueue.x-k8s.io/queue-name": "b"}, "b"),
    ],
)
def test_the_queue_of_a_pod(labels, name):
    assert queue_name(make_pod(labels=labels)) == name
