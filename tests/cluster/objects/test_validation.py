"""Validation of requests: results that are remembered for equal specs."""

import copy
import time
import uuid
from random import Random

import pytest

from moorage.cluster.objects import validation
from moorage.cluster.resources import PODS
from moorage.cluster.status_errors import InvalidError

CONSTRAINT = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    "matchLabelKeys": ["app"],
}


def pod(name="p", **spec):
    containers = [{"name": "c", "image": "a"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def test_every_pod_of_an_invalid_spec_is_rejected():
    for name in ("first", "second"):
        with pytest.raises(InvalidError, match=f'"{name}" is invalid.*restartPolicy'):
            validation.validate(PODS, pod(name, restartPolicy="Sometimes"))


def test_the_name_is_validated_for_a_spec_that_is_known_as_valid():
    validation.validate(PODS, pod("fine"))
    with pytest.raises(InvalidError, match=r"metadata\.name"):
        validation.validate(PODS, pod("Not_Fine"))


def test_labels_count_where_the_spec_refers_to_them():
    plain = pod(topologySpreadConstraints=[CONSTRAINT])
    validation.validate(PODS, plain)
    labelled = copy.deepcopy(plain)
    labelled["metadata"]["labels"] = {"app": "a"}
    with pytest.raises(InvalidError, match="exists in both matchLabelKeys and labelSelector"):
        validation.validate(PODS, labelled)


def test_quantities_of_a_known_spec_and_of_the_status_are_validated():
    huge = {"requests": {"example.com/a": "10000000000000000000"}}
    containers = [{"name": "c", "image": "a", "resources": huge}]
    for name in ("first", "second"):
        with pytest.raises(InvalidError, match=f'"{name}".*must fit into 64 bits'):
            validation.validate(PODS, pod(name, containers=containers))
    running = {**pod(), "status": {"containerStatuses": [{"name": "c", "resources": huge}]}}
    with pytest.raises(InvalidError, match=r"status\.containerStatuses\[0\].*64 bits"):
        validation.validate(PODS, running)


@pytest.mark.parametrize("seed", range(20))
def test_generated_uids_are_those_of_the_standard_library(seed):
    expected = uuid.UUID(int=Random(seed).getrandbits(128), version=4)
    assert validation.generate_uid(Random(seed)) == str(expected)


def test_time_of_an_update_is_linear_in_the_length_of_a_list():
    count = 20_000
    lists = {
        "tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(count)],
        "schedulingGates": [{"name": f"example.com/g{i}"} for i in range(count)],
    }
    before = pod(**lists)
    after = pod(**{field: items[::-1] for field, items in lists.items()})
    began = time.process_time()
    validation.validate_update(PODS, before, after)
    assert time.process_time() - began < 5  # by search: 15 seconds
    del after["spec"]["tolerations"][-1]
    with pytest.raises(InvalidError, match="existing toleration can not be modified"):
        validation.validate_update(PODS, before, after)
