"""Objects whose texts would be commands to a terminal."""

import json

import pytest

HOSTILE = "\x1b]0;owned\x07\x9b2J\u202ex"


@pytest.fixture
def cluster(write):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "labels": {"app": HOSTILE}},
        "spec": {
            "containers": [{"name": "main", "image": HOSTILE}],
            "nodeSelector": {"zone": HOSTILE},
            "schedulerName": "default-scheduler",
        },
    }
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "spec": {"taints": [{"key": HOSTILE, "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "4", "pods": "10"}},
    }
    return write("cluster.json", json.dumps(pod) + json.dumps(node))


def controls(text):
    return [each for each in text if each in "\x1b\x07\x9b\u202e"]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["simulate"], id="simulate"),
        pytest.param(["simulate", "-o", "json"], id="simulate as JSON"),
        pytest.param(["simulate", "-o", "yaml"], id="simulate as YAML"),
        pytest.param(["explain", "default/web"], id="explain"),
        pytest.param(["explain", "default/web", "-o", "json"], id="explain as JSON"),
    ],
)
@pytest.mark.parametrize("flags", [[], ["--validate=ignore"]])
def test_no_control_character_is_printed(run, cluster, command, flags):
    got = run(*command, "-f", cluster, *flags)
    assert controls(got.stdout + got.stderr) == []


def test_errors(run, write):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": HOSTILE}, "spec": HOSTILE}
    file = write("bad.json", json.dumps(pod))
    got = run("simulate", "-f", file)
    assert got.exit_code == 2
    assert controls(got.stdout + got.stderr) == []
