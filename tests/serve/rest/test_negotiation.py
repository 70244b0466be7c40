"""Encodings of requests and responses: JSON, YAML and protobuf."""

import json

import pytest
import yaml

from moorage.cluster.resources import CONFIG_MAPS
from moorage.cluster.store import StoredObject, encode
from moorage.serve.protobuf import envelope, wire
from moorage.serve.rest.responses import MessageCache

PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
JSON, YAML, PROTOBUF = "application/json", "application/yaml", envelope.MEDIA_TYPE
TABLE = "as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
DEFINITION = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@pytest.fixture
def widgets(server):
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert server.post(path, DEFINITION).status == 201
    return WIDGETS


@pytest.mark.parametrize(
    ("accept", "path", "status", "media"),
    [  # as kube-apiserver v1.36 answers
        (PROTOBUF, PODS, 200, PROTOBUF),
        (f"{JSON};q=0.1,{PROTOBUF}", PODS, 200, PROTOBUF),
        (f"{PROTOBUF},{JSON}", WIDGETS, 200, JSON),
        (f"{PROTOBUF};stream=watch", PODS, 200, PROTOBUF),
        (f"{PROTOBUF};{PARTIAL},{JSON}", PODS, 200, PROTOBUF),
        (f"{PROTOBUF};{PARTIAL},{JSON}", WIDGETS, 200, PROTOBUF),
        (f"{PROTOBUF};{TABLE},{JSON};{TABLE}", PODS, 200, JSON),
        (YAML, PODS, 200, YAML),
        (YAML, WIDGETS, 200, YAML),
        ("*/*", PODS, 200, JSON),
        (PROTOBUF, "/apis/apps/v1", 200, PROTOBUF),
        (PROTOBUF, WIDGETS, 406, PROTOBUF),
        (f"{PROTOBUF};{TABLE}", PODS, 406, JSON),
        (YAML, f"{PODS}?watch=1", 406, YAML),
        ("text/plain", WIDGETS, 406, JSON),
        (PROTOBUF, f"{PODS}/none", 404, PROTOBUF),
        (f"{PROTOBUF};{PARTIAL},{JSON}", f"{PODS}/none", 404, JSON),
    ],
)
def test_encoding_of_a_response(server, widgets, accept, path, status, media):
    answer = server.get(path, Accept=accept)
    assert (answer.status, answer.headers["Content-Type"]) == (status, media)
    if media == PROTOBUF:
        envelope.decode(answer.body)
    elif media == YAML:
        yaml.safe_load(answer.body)
    else:
        assert answer.json


def test_object_in_three_encodings(server, make_pod):
    created = server.post(PODS, make_pod("web")).json
    in_protobuf = envelope.decode(server.get(f"{PODS}/web", Accept=PROTOBUF).body)
    assert in_protobuf["spec"] == created["spec"] | {"securityContext": {}}
    assert in_protobuf["metadata"]["uid"] == created["metadata"]["uid"]
    assert yaml.safe_load(server.get(f"{PODS}/web", Accept=YAML).body) == created
    listed = envelope.decode(server.get(PODS, Accept=PROTOBUF).body)
    assert listed["items"] == [without_kind(in_protobuf)]


def without_kind(obj):
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


def test_lease_keeps_the_fraction_of_its_times(server):
    spec = {"holderIdentity": "a", "renewTime": "2026-11-17T10:20:31.000007Z"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
    body = envelope.encode({**lease, "metadata": {"name": "leader"}})
    answer = server.request("POST", LEASES, body, media=PROTOBUF, Accept=PROTOBUF)
    assert answer.status == 201
    assert envelope.decode(answer.body)["spec"] == spec
    assert server.get(f"{LEASES}/leader").json["spec"] == spec


def test_service_keeps_its_target_port(server):
    ports = [{"port": 80, "targetPort": "http"}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    body = envelope.encode({**service, "spec": {"ports": ports}})
    path = "/api/v1/namespaces/default/services"
    server.request("POST", path, body, media=PROTOBUF)
    assert server.get(f"{path}/web").json["spec"]["ports"][0]["targetPort"] == "http"


def test_deletion_with_options_in_protobuf(server, make_pod):
    server.post(PODS, make_pod("web"))
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "other"}}
    answer = server.request("DELETE", f"{PODS}/web", envelope.encode(options), media=PROTOBUF)
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")


def test_custom_resources_are_not_read_as_protobuf(server, widgets):
    body = envelope.wrap("example.com/v1", "Widget", b"")
    answer = server.request("POST", widgets, body, media=PROTOBUF)
    assert (answer.status, answer.json["reason"]) == (415, "UnsupportedMediaType")


def test_watch_in_protobuf(server, make_pod):
    created = server.post(PODS, make_pod("web")).json
    answer = server.get(f"{PODS}?watch=1&timeoutSeconds=1", Accept=f"{PROTOBUF},{JSON}")
    assert answer.headers["Content-Type"] == f"{PROTOBUF};stream=watch"
    length = int.from_bytes(answer.body[:4], "big")
    assert len(answer.body) == 4 + length
    parts = wire.texts(answer.body[4:])
    assert parts[1] == b"ADDED"
    pod = envelope.decode(wire.texts(parts[2])[1])
    assert pod["metadata"]["uid"] == created["metadata"]["uid"]


def test_expired_watch_in_protobuf(server):
    answer = server.get(f"{PODS}?watch=1&resourceVersion=999999", Accept=PROTOBUF)
    parts = wire.texts(answer.body[4:])
    assert parts[1] == b"ERROR"
    assert envelope.decode(wire.texts(parts[2])[1])["code"] == 410


def test_response_to_a_write_in_protobuf(server, make_pod):
    pod = json.dumps(make_pod("web")).encode()
    answer = server.request("POST", PODS, pod, Accept=PROTOBUF)
    assert envelope.decode(answer.body)["metadata"]["name"] == "web"


def test_kept_messages_are_limited_by_their_bytes():
    cache = MessageCache(max_bytes=5_000_000)
    for number in range(20):
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}}
        obj["data"] = {"a": "x" * 1_000_000}
        stored = StoredObject(obj, encode(obj), number)
        assert cache.get(CONFIG_MAPS, stored) is cache.get(CONFIG_MAPS, stored)
    assert 2_000_000 < cache.bytes <= 5_000_000
