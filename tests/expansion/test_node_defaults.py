"""What a kubelet sets, on nodes from files."""

import json

import pytest

from moorage.api import manifests
from moorage.expansion import node_defaults

PLATFORM = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
BETA = {f"beta.{key}": value for key, value in PLATFORM.items()}


def node(name="n", labels=None, status=None, **meta):
    found = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **meta}}
    if labels is not None:
        found["metadata"]["labels"] = labels
    return found | ({} if status is None else {"status": status})


@pytest.mark.parametrize(
    ("given", "labels", "allocatable", "note"),
    [
        pytest.param(
            node(status={"allocatable": {"cpu": "4"}}),
            {"kubernetes.io/hostname": "n", **PLATFORM, **BETA},
            {"cpu": "4", "pods": "110"},
            "kubernetes.io/hostname, kubernetes.io/os=linux, kubernetes.io/arch=amd64, pods: 110",
            id="nothing but a size",
        ),
        pytest.param(
            node(status={"capacity": {"cpu": "4", "pods": "20"}}, labels={"disk": "ssd"}),
            {"kubernetes.io/hostname": "n", **PLATFORM, **BETA, "disk": "ssd"},
            {},
            "kubernetes.io/hostname, kubernetes.io/os=linux, kubernetes.io/arch=amd64",
            id="capacity only",
        ),
        pytest.param(
            node(labels={"kubernetes.io/hostname": "other", "kubernetes.io/arch": "arm64"}),
            {
                "kubernetes.io/hostname": "other",
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "arm64",
                "beta.kubernetes.io/os": "linux",
                "beta.kubernetes.io/arch": "arm64",
            },
            {"pods": "110"},
            "kubernetes.io/os=linux, pods: 110",
            id="given labels win",
        ),
        pytest.param(node(uid="1"), {}, {}, "", id="from an API server"),
    ],
)
def test_complete(given, labels, allocatable, note):
    text = f"assumed for 1 Node, as a kubelet would set it: {note}" if note else ""
    [found], told = node_defaults.complete(manifests.from_dicts([given]))
    assert (found.labels, dict(found.status.allocatable), told) == (labels, allocatable, text)
    document = json.loads(json.dumps(given))
    assert node_defaults.complete_documents([("here", document)]) == text
    assert document["metadata"].get("labels", {}) == labels
    assert document.get("status", {}).get("allocatable", {}) == allocatable


def test_malformed_documents_are_left_to_the_reader():
    for document in (None, [], {"kind": "Node"}, node(status=[]), node(labels=["a"])):
        assert not node_defaults.complete_documents([("here", document)])
