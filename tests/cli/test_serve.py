"""`moorage serve`: what it says when it cannot begin; tests/serve/live has the rest."""

import json
import socket
import sqlite3
from pathlib import Path

import pytest
import yaml

from moorage.api import config, manifests
from moorage.cluster.resources import PODS, RESOURCE_CLAIMS
from moorage.errors import ManifestError
from moorage.serve import access, initial_objects, server


def message(got):
    assert got.exit_code == 2
    assert got.stdout == ""
    assert got.stderr.count("\n") == 1
    return got.stderr.removeprefix("moorage: ").rstrip("\n")


def test_check_of_a_database(run, here):
    assert message(run("serve", "--check")) == "--check: needs --data-dir FOLDER"
    server.open_api(here / "data").store.close()
    got = run("serve", "--data-dir", "data", "--check")
    assert got.exit_code == 0
    assert "objects, no damage found" in got.stdout
    with sqlite3.connect(here / "data/moorage.db") as database:
        database.execute("UPDATE objects SET body = '{' WHERE name = 'kube-system'")
    database.close()
    assert "--check" in message(run("serve", "--data-dir", "data", "--port", "0"))
    got = run("serve", "--data-dir", "data", "--check")
    assert got.exit_code == 1
    assert "objects saved; the damaged database is data/moorage.db.damaged-1" in got.stdout


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(
            ["-f", "nowhere.yaml"], "nowhere.yaml: no such file or folder", id="no such file"
        ),
        pytest.param(
            ["--annotate-results", "--no-scheduler"],
            "--annotate-results: needs the scheduler; omit --no-scheduler",
            id="results of no scheduler",
        ),
        pytest.param(
            ["--config", "nowhere.yaml"], "nowhere.yaml: no such file", id="no such configuration"
        ),
        pytest.param(
            ["--bind-address", "here"],
            '--bind-address: must be an IP address such as 127.0.0.1, is "here"',
            id="no address",
        ),
        pytest.param(
            ["--bind-address", "0.0.0.0"],
            "--bind-address 0.0.0.0: a non-loopback address requires a token; pass a file with "
            "one: --token-file FILE",
            id="a non-loopback address without a token",
        ),
        pytest.param(
            ["--token-file", "short"],
            "--token-file short: must hold one token of 8 letters or more and nothing else; "
            "make one with: openssl rand -hex 16",
            id="no token in the file",
        ),
        pytest.param(
            ["--token-file", "none"], "--token-file none: No such file or directory", id="no file"
        ),
        pytest.param(
            ["--tls-cert", "short"],
            "--tls-key: is missing; --tls-cert needs it",
            id="a certificate without a key",
        ),
        pytest.param(
            ["--tls-cert", "short", "--tls-key", "short", "--port", "0"],
            "--tls-cert, --tls-key: must be a certificate and its key, as PEM files",
            id="no certificate in the file",
        ),
        pytest.param(
            ["--data-dir", "short"],
            "short: cannot be used to store data: File exists",
            id="a file instead of a folder",
        ),
        pytest.param(
            ["-f", "twice.yaml"],
            "twice.yaml, document 2, Node one: is already defined in twice.yaml, document 1",
            id="an object that is there twice",
        ),
        pytest.param(
            ["-f", "uid.yaml"],
            'uid.yaml, document 2, Node two, metadata.uid: "u" is also the UID of Node one '
            "(uid.yaml, document 1)",
            id="two objects with one UID",
        ),
        pytest.param(
            ["-f", "lists.yaml"],
            "lists.yaml, document 1, Node, extra: unknown field",
            id="a list as name beside an unknown field",
        ),
        pytest.param(
            ["-f", "secret.yaml"],
            "secret.yaml, document 1, Secret, metadata.name: must be text, is [[]]",
            id="a list as name of a kind that scheduling does not read",
        ),
        pytest.param(
            ["-f", "wrong.yaml"],
            "wrong.yaml, document 1, Pod default/p, spec.containers: must be a list, is 1",
            id="an object that is none",
        ),
    ],
)
def test_bad_input_is_one_line(run, here, options, text):
    (here / "short").write_text("abc\n")
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}}
    (here / "twice.yaml").write_text(yaml.safe_dump_all([node, node]))
    same = [node | {"metadata": {"name": name, "uid": "u"}} for name in ("one", "two")]
    (here / "uid.yaml").write_text(yaml.safe_dump_all(same))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": [[]]}}
    (here / "secret.yaml").write_text(yaml.safe_dump(secret))
    lists = node | {"metadata": {"name": [1], "uid": [1]}, "extra": 1}
    (here / "lists.yaml").write_text(yaml.safe_dump(lists))
    wrong = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": 1},
    }
    (here / "wrong.yaml").write_text(yaml.safe_dump(wrong))
    assert message(run("serve", *options)).startswith(text)


def test_a_port_in_use_is_one_line(run, here):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert message(run("serve", "--port", port)) == (
            f"cannot listen on 127.0.0.1:{port}: the address is in use; "
            "is one running already? --port 0 takes any that is free"
        )
    assert not (here / "moorage.kubeconfig").exists()


# What a playground begins with -------------------------------------------------------------------


def owner(name, uid):
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": uid}


def test_a_dump_of_another_cluster_keeps_its_ties(here):
    """UIDs are new here; references follow them, and those that lead nowhere are dropped."""
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
    items = [
        pod
        | {"metadata": {"name": "p0", "namespace": "shop", "ownerReferences": [owner("r", "1")]}},
        pod
        | {"metadata": {"name": "p1", "namespace": "shop", "ownerReferences": [owner("x", "9")]}},
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "r", "namespace": "shop", "uid": "1", "resourceVersion": "5"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "v"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/v"},
                "claimRef": {"namespace": "shop", "name": "data", "uid": "7"},
            },
        },
    ]
    (here / "dump.yaml").write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items})
    )
    api = server.open_api(None)
    assert initial_objects.add_objects(api, manifests.load_whole(["dump.yaml"])[0]) == 4
    by_name = {
        obj["metadata"]["name"]: obj for place in api.registry for obj in api.store.each(place)
    }
    (kept,) = by_name["p0"]["metadata"]["ownerReferences"]
    assert kept["uid"] == by_name["r"]["metadata"]["uid"] != "1"
    assert "ownerReferences" not in by_name["p1"]["metadata"]
    assert "uid" not in by_name["v"]["spec"]["claimRef"]
    assert "shop" in by_name
    assert initial_objects.add_objects(api, manifests.load_whole(["dump.yaml"])[0]) == 0


def test_node_pools_become_nodes_with_devices(here):
    devices = [{"driver": "gpu.example.com", "class": "gpu", "count": 8}]
    spec = {"count": 2, "template": {"status": {"allocatable": {"cpu": "4"}}}, "devices": devices}
    pool = {"apiVersion": "moorage.dev/v1", "kind": "NodePool", "metadata": {"name": "gpu"}}
    (here / "pool.yaml").write_text(yaml.safe_dump(pool | {"spec": spec}))
    api = server.open_api(None)
    assert initial_objects.add_objects(api, manifests.load_whole(["pool.yaml"])[0]) == 5
    made = {obj["metadata"]["name"]: obj for place in api.registry for obj in api.store.each(place)}
    slice_ = made["gpu-0-gpu.example.com"]
    assert slice_["metadata"]["ownerReferences"][0]["uid"] == made["gpu-0"]["metadata"]["uid"]
    assert len(slice_["spec"]["devices"]) == 8
    assert made["gpu"]["kind"] == "DeviceClass"
    assert initial_objects.add_objects(api, manifests.load_whole(["pool.yaml"])[0]) == 0


def test_the_cluster_of_a_scenario_is_served():
    file = Path(__file__).parents[2] / "examples/scenarios/rollout.yaml"
    api = server.open_api(None)
    assert initial_objects.add_objects(api, manifests.load_whole([str(file)])[0]) == 6
    made = {obj["kind"] for place in api.registry for obj in api.store.each(place)}
    assert made >= {"Node", "Deployment", "PodDisruptionBudget", "CronJob"}


def test_devices_of_a_dump_stay_allocated(here):
    allocation = {"devices": {"results": [{"driver": "d", "pool": "n", "device": "gpu-0"}]}}
    users = [
        {"resource": "pods", "name": name, "uid": uid} for name, uid in (("p", "7"), ("q", "8"))
    ]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "7", "controller": True}
    items = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": "c",
                "ownerReferences": [owner],
                "finalizers": ["resource.kubernetes.io/delete-protection"],
            },
            "spec": {},
            "status": {"allocation": allocation, "reservedFor": users},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "uid": "7"},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]},
            "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]},
        },
    ]
    (here / "dump.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    )
    api = server.open_api(None)
    initial_objects.add_objects(api, manifests.load_whole(["dump.json"])[0])
    claim = api.store.get(RESOURCE_CLAIMS, "default", "c")
    pod = api.store.get(PODS, "default", "p")
    assert claim["status"]["allocation"] == allocation
    assert claim["status"]["reservedFor"] == [users[0] | {"uid": pod["metadata"]["uid"]}]
    assert pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"] == "c"


def test_error_in_a_node_pool_names_file_and_field(here):
    pool = {"apiVersion": "moorage.dev/v1", "kind": "NodePool", "metadata": {"name": "gpu"}}
    (here / "pool.yaml").write_text(yaml.safe_dump(pool | {"spec": {"count": -1, "template": {}}}))
    with pytest.raises(ManifestError, match=r"pool\.yaml.*spec\.count"):
        initial_objects.add_objects(server.open_api(None), manifests.load_whole(["pool.yaml"])[0])


def test_nodes_of_its_own_lie_in_three_zones():
    zones = [
        node["metadata"]["labels"]["topology.kubernetes.io/zone"]
        for node in initial_objects.default_nodes(4)
    ]
    assert zones == ["zone-a", "zone-b", "zone-c", "zone-a"]


def test_the_demo_can_be_served():
    api = server.open_api(None)
    assert initial_objects.add_objects(api, manifests.load_whole(["examples/demo"])[0]) > 10


def test_a_readable_kubeconfig_and_one_with_secrets():
    plain = yaml.safe_load(access.kubeconfig_text("http://127.0.0.1:1"))
    assert plain["users"] == [{"name": "moorage", "user": {}}]
    guarded = yaml.safe_load(access.kubeconfig_text("https://h:1", token="t", authority=b"pem"))
    assert guarded["users"][0]["user"] == {"token": "t"}
    assert guarded["clusters"][0]["cluster"]["certificate-authority-data"] == "cGVt"


def test_a_kubeconfig_leaves_pipes_and_links_what_they_are(tmp_path, pipe):
    access.write_kubeconfig(pipe, "kind: Config")
    assert pipe.is_fifo()  # A device would be gone likewise.
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "kept")
    access.write_kubeconfig(link, "kind: Config")
    assert link.is_symlink()
    assert (tmp_path / "kept").read_text() == "kind: Config"


def test_without_a_configuration_nothing_is_scheduled(tmp_path):
    plan = server.ServeOptions(access=None, kubeconfig=tmp_path)
    assert server.scheduler(plan) is None
    plan = server.ServeOptions(access=None, kubeconfig=tmp_path, configuration=config.load(None))
    assert "default-scheduler" in server.scheduler(plan).profiles
