"""Commands run in this process, and a small cluster for them to look at."""

import os

import pytest
from tests import command_line

from moorage.api import documents

PLATFORM = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}


@pytest.fixture(autouse=True)
def _columns(monkeypatch):
    """A width that does not depend on the terminal that runs the tests."""
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def run():
    return command_line.run


@pytest.fixture
def write(tmp_path):
    """Writes objects to a file, or a text as it is."""

    def write_file(name, *content):
        path = tmp_path / name
        texts = [each if isinstance(each, str) else documents.as_yaml(each) for each in content]
        path.write_text("---\n".join(texts))
        return path

    return write_file


@pytest.fixture
def configure(write):
    """Writes a configuration that enables a plugin of the same folder."""

    def write_configuration(plugin, **members):
        enabled = {"multiPoint": {"enabled": [{"name": plugin, **members}]}}
        return write("config.yaml", CONFIGURATION | {"profiles": [{"plugins": enabled}]})

    return write_configuration


@pytest.fixture
def pipe(tmp_path):
    """A named pipe with a reader."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield path
    os.close(reader)


def node(name, cpu="4", **spec):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **PLATFORM}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}},
    }


def pod(name, cpu="1", labels=None, **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


@pytest.fixture
def cluster(write):
    """Two nodes; a pod that fits one of them, one that fits none, a gated and a running one."""
    return write(
        "cluster.yaml",
        node("small", "2"),
        node("large", "8"),
        pod("runs", "1", nodeName="small"),
        pod("fits", "3"),
        pod("huge", "64"),
        pod("gated", schedulingGates=[{"name": "example.com/wait"}]),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}},
    )


@pytest.fixture
def make_node():
    return node


@pytest.fixture
def make_pod():
    return pod
