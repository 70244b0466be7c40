"""Pods with claims on the command line: what is missing is said, what comes along is used."""

import pytest
from tests.storage_manifests import claim, claimed, storage_class

CLASS, CLAIM = storage_class(), claim()
HINT = "A claim gets its volume from a StorageClass or PersistentVolume"


@pytest.fixture
def user(make_pod):
    return make_pod("user", "2", volumes=[claimed("data")])


@pytest.mark.parametrize("command", [("simulate",), ("simulate", "capacity", "--pod", "pod.yaml")])
def test_a_missing_class_is_pointed_out(run, write, make_node, user, command):
    cluster = write("cluster.yaml", make_node("a"), CLAIM, user)
    pod = write("pod.yaml", user)
    command = [pod if each == "pod.yaml" else each for each in command]
    assert HINT in " ".join(run(*command, "-f", cluster).stdout.split())
    with_class = write("class.yaml", CLASS)
    assert HINT not in " ".join(run(*command, "-f", cluster, "-f", with_class).stdout.split())


def test_claims_and_classes_in_the_file_of_the_pod_are_added(run, write, make_node, user):
    cluster = write("cluster.yaml", make_node("a"))
    pod = write("pod.yaml", user, CLAIM, CLASS)
    got = run("simulate", "capacity", "-f", cluster, "--pod", pod)
    assert got.stdout.startswith("2 more of default/user fit.")


def test_a_pool_in_the_file_of_the_pod_is_not_a_workload(run, write, make_node, make_pod):
    pool = {
        "apiVersion": "moorage.dev/v1",
        "kind": "NodePool",
        "metadata": {"name": "pool"},
        "spec": {"count": 3, "template": {"status": {"allocatable": {"cpu": "4"}}}},
    }
    cluster = write("cluster.yaml", make_node("a"))
    pod = write("pod.yaml", pool, make_pod("web", "2"))
    got = run("simulate", "capacity", "-f", cluster, "--pod", pod)
    assert got.stdout.startswith("2 more of default/web fit.")


def test_the_size_of_a_new_cluster(run, write, make_node, make_pod):
    pods = write("pods.yaml", *(make_pod(f"p{i}", "3") for i in range(3)))
    template = write("template.yaml", make_node("new"))
    got = run("simulate", "add-nodes", "-f", pods, "--template", template)
    assert got.stdout.startswith("3 pods had no node; 3 more nodes are enough")
