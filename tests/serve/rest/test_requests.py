"""Requests and their responses."""

import json
import socket
import threading
import time
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor

import pytest

from moorage.serve import sqlite
from moorage.serve.rest import requests
from moorage.serve.rest.app import AppSettings
from moorage.serve.sqlite import SqliteJournal

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def deployment(name="web", replicas=2, **meta):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, **meta},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "nginx"}]},
            },
        },
    }


def without_type(obj):
    """The object as it is in a list."""
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}


def refused(answer, code, reason, text=""):
    told = answer.json
    assert (answer.status, told["code"], told["reason"]) == (code, code, reason), told
    assert text in told["message"]
    return told


@pytest.mark.parametrize(
    ("change", "code", "reason", "text"),
    [
        pytest.param({"kind": "Node"}, 400, "BadRequest", "does not match the expected kind",
                     id="another kind"),
        pytest.param({"apiVersion": "v2"}, 400, "BadRequest", "does not match the expected API",
                     id="another version"),
        pytest.param({"metadata": {"name": "A b"}}, 422, "Invalid", "metadata.name: Invalid value",
                     id="a name that is none"),
        pytest.param({"metadata": {}}, 422, "Invalid", "name or generateName is required",
                     id="no name"),
        pytest.param({"metadata": {"name": "x", "namespace": "other"}}, 400, "BadRequest",
                     "does not match the namespace sent on the request", id="another namespace"),
        pytest.param({"metadata": {"name": "x", "labels": {"a": "b c"}}}, 422, "Invalid",
                     "a valid label must be", id="a label that is none"),
        pytest.param({"metadata": {"name": "x", "labels": ["a"]}}, 400, "BadRequest",
                     "cannot unmarshal array into", id="labels of another type"),
        pytest.param({"spec": {}}, 422, "Invalid", "spec.containers: Required value",
                     id="no containers"),
        pytest.param({"spec": "x"}, 400, "BadRequest", "Pod.spec of type", id="a text as spec"),
        pytest.param({"metadata": []}, 400, "BadRequest", "metadata has to be an object",
                     id="a list as metadata"),
    ],
)  # fmt: skip
def test_rejected_objects(server, make_pod, change, code, reason, text):
    refused(server.post(PODS, make_pod() | change), code, reason, text)
    assert server.get(PODS).json["items"] == []


@pytest.mark.parametrize(
    ("requests", "text"),
    [
        pytest.param({"cpu": "1e999999999"}, "must fit into 64 bits", id="absurd"),
        pytest.param({"cpu": "-1"}, "must be greater than or equal to 0", id="negative"),
        pytest.param({"cpu": "3"}, "must be less than or equal to cpu limit", id="above the limit"),
    ],
)
def test_rejected_quantities(server, make_pod, requests, text):
    resources = {"requests": requests, "limits": {"cpu": "2"}}
    container = {"name": "app", "image": "nginx", "resources": resources}
    refused(server.post(PODS, make_pod(containers=[container])), 422, "Invalid", text)


def test_what_is_no_quantity_is_a_bad_request(server, make_pod):
    container = {"name": "app", "image": "nginx", "resources": {"requests": {"cpu": "much"}}}
    answer = server.post(PODS, make_pod(containers=[container]))
    refused(answer, 400, "BadRequest", "quantities must match the regular expression")


LEVELS = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
BOMB = f"a0: &a0 [1]\n{LEVELS}".encode()


@pytest.mark.parametrize(
    ("body", "media", "code"),
    [
        pytest.param(b"{", "application/json", 400, id="half a body"),
        pytest.param(b"[" * 100_000, "application/json", 400, id="deep beyond reading"),
        pytest.param(b'{"a":' * 200 + b"1" + b"}" * 200, "application/json", 400, id="deep"),
        pytest.param(BOMB, "application/yaml", 400, id="YAML aliases without limit"),
        pytest.param(b"\xff\xfe", "application/yaml", 400, id="no text"),
        pytest.param(b"[" * 100_000, "application/yaml", 400, id="deep YAML"),
        pytest.param(b'{"kind": "\xff"}', "application/json", 400, id="no UTF-8 in a text"),
        pytest.param(b"k8s\x00\xff\xff\xff", "application/vnd.kubernetes.protobuf", 400,
                     id="broken protobuf"),
        pytest.param(b"x", "text/plain", 415, id="another format"),
        pytest.param(b'"' + b"x" * 4_000_000 + b'"', "application/json", 413, id="too large"),
    ],
)  # fmt: skip
def test_rejected_bodies(server, body, media, code):
    answer = server.request("POST", PODS, body, media=media)
    assert (answer.status, answer.json["kind"]) == (code, "Status")


def test_body_that_is_not_what_its_encoding_says(server):
    answer = server.request("POST", PODS, b"hello", Content_Encoding="gzip")
    refused(answer, 400, "BadRequest", "cannot be decoded as 'gzip'")


def test_body_that_does_not_arrive(server, monkeypatch):
    monkeypatch.setattr(requests, "BODY_SECONDS", 0.1)
    head = f"POST {PODS} HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: 100\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(head.encode() + b"{")
        assert connection.recv(100).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(
    ("method", "path", "code", "reason"),
    [
        pytest.param("GET", f"{PODS}/none", 404, "NotFound", id="no such pod"),
        pytest.param("GET", "/api/v1/unknown", 404, "NotFound", id="no such resource"),
        pytest.param("GET", "/apis/unknown/v1", 404, "NotFound", id="no such group"),
        pytest.param("GET", "/odd", 404, "NotFound", id="no such path"),
        pytest.param("POST", f"{PODS}/web", 405, "MethodNotAllowed", id="create by name"),
        pytest.param("PUT", PODS, 405, "MethodNotAllowed", id="update a collection"),
        pytest.param("GET", f"{PODS}?labelSelector=a%20in", 400, "BadRequest", id="selector"),
        pytest.param("GET", f"{PODS}?fieldSelector=spec.x=1", 400, "BadRequest", id="field"),
        pytest.param("GET", f"{PODS}?limit=x", 400, "BadRequest", id="limit"),
        pytest.param("GET", f"{PODS}?continue=abc", 400, "BadRequest", id="token"),
        pytest.param("GET", f"{PODS}?resourceVersion=x", 400, "BadRequest", id="version"),
        pytest.param("GET", f"{PODS}?resourceVersion=99999", 504, "Timeout", id="in the future"),
        pytest.param("DELETE", "/api/v1/namespaces/default", 403, "Forbidden", id="default"),
        pytest.param("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
                     403, "Forbidden", id="a system priority class"),
    ],
)  # fmt: skip
def test_rejected_requests(server, method, path, code, reason):
    refused(server.request(method, path), code, reason)


def test_create_in_a_missing_namespace_fails(server, make_pod):
    answer = server.post("/api/v1/namespaces/none/pods", make_pod())
    refused(answer, 404, "NotFound", 'namespaces "none" not found')


def test_namespace_is_deleted_after_its_content(server, make_pod):
    server.post("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    server.delete("/api/v1/namespaces/shop")
    ending = server.get("/api/v1/namespaces/shop").json
    assert ending["status"]["phase"] == "Terminating"
    answer = server.post("/api/v1/namespaces/shop/pods", make_pod())
    refused(answer, 403, "Forbidden", "because it is being terminated")
    ending["spec"]["finalizers"] = []
    server.put("/api/v1/namespaces/shop/finalize", ending)
    assert server.get("/api/v1/namespaces/shop").status == 404


def test_pod_gets_the_defaults_of_an_api_server(server, make_pod):
    limits = {"cpu": "1", "memory": "1Gi"}
    container = {"name": "app", "image": "nginx:1", "resources": {"limits": limits}}
    pod = server.post(PODS, make_pod(containers=[container])).json
    spec = pod["spec"]
    assert spec["containers"][0]["resources"]["requests"] == limits
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert (spec["schedulerName"], spec["terminationGracePeriodSeconds"]) == (
        "default-scheduler",
        30,
    )
    assert {each["key"] for each in spec["tolerations"]} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
    assert (pod["status"]["phase"], pod["status"]["qosClass"]) == ("Pending", "Guaranteed")
    assert pod["metadata"]["generation"] == 1


SIZE = {"storage": "1Gi"}
VOLUME = {"capacity": SIZE, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        pytest.param("/api/v1/namespaces", {}, {"phase": "Active"}, id="a namespace"),
        pytest.param(
            "/api/v1/persistentvolumes", {"spec": VOLUME}, {"phase": "Available"}, id="a volume"
        ),
        pytest.param(
            "/api/v1/persistentvolumes",
            {"spec": VOLUME | {"claimRef": {"uid": "1"}}},
            {"phase": "Bound"},
            id="a claimed volume",
        ),
        pytest.param(
            "/api/v1/namespaces/default/persistentvolumeclaims",
            {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": SIZE}}},
            {"phase": "Pending"},
            id="a claim",
        ),
        pytest.param(
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
            {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
            {"loadBalancer": {}},
            id="an ingress",
        ),
    ],
)
def test_status_of_a_new_object_is_dropped(server, path, body, status):
    brought = {"metadata": {"name": "x"}, "status": {"phase": "Terminating"}}
    assert server.post(path, brought | body).json["status"] == status


def test_priority_comes_from_the_priority_class(server, make_pod):
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    server.post(classes, {"metadata": {"name": "high"}, "value": 1000})
    pod = server.post(PODS, make_pod(priorityClassName="high")).json
    assert pod["spec"]["priority"] == 1000
    answer = server.post(PODS, make_pod("b", priorityClassName="none"))
    refused(answer, 403, "Forbidden", "no PriorityClass with name none was found")
    answer = server.post(PODS, make_pod("c", priority=7))
    refused(answer, 403, "Forbidden", "must not be provided in pod spec")


def test_admin_access_to_devices_needs_a_label_of_the_namespace(server):
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    path = "spec.devices.requests[0].exactly.adminAccess: Forbidden: admin access to devices"
    refused(server.post(claims, claim), 422, "Invalid", path)
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    server.patch("/api/v1/namespaces/default", label, MERGE)
    assert server.post(claims, claim).status == 201


def test_spec_of_a_device_claim_cannot_change(server):
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    server.post(claims, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}})
    change = {"spec": {"devices": {"requests": []}}}
    answer = server.patch(f"{claims}/c", change, MERGE)
    refused(answer, 422, "Invalid", "field is immutable")
    status = {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]}}
    assert server.patch(f"{claims}/c/status", status, MERGE).status == 200


def test_a_log_is_empty_and_warns(server, make_pod):
    server.post(PODS, make_pod())
    refused(server.get(f"{PODS}/web/log"), 400, "BadRequest", "does not have a host assigned")
    target = {"target": {"name": "a"}}
    server.post(f"{PODS}/web/binding", {"metadata": {"name": "web"}, **target})
    answer = server.get(f"{PODS}/web/log?follow=true")
    assert (answer.status, answer.body) == (200, b"")
    assert "no log, because nothing runs here" in answer.headers["Warning"]
    assert server.post(f"{PODS}/web/log", {}).status == 405


@pytest.mark.parametrize("part", ["exec", "attach", "portforward"])
def test_what_needs_a_container_is_refused_in_words(server, make_pod, part):
    server.post(PODS, make_pod())
    for answer in (server.get(f"{PODS}/web/{part}"), server.post(f"{PODS}/web/{part}", {})):
        refused(answer, 400, "BadRequest", f"no {part}, because nothing runs here")


def test_gated_pod_has_the_scheduling_gated_condition(server, make_pod):
    pod = server.post(PODS, make_pod(schedulingGates=[{"name": "wait"}])).json
    assert pod["status"]["conditions"][0]["reason"] == "SchedulingGated"
    more = {"spec": {"schedulingGates": [{"name": "wait"}, {"name": "more"}]}}
    answer = server.patch(f"{PODS}/web", more, MERGE)
    refused(answer, 422, "Invalid", "only deletion is allowed")
    assert server.patch(f"{PODS}/web", {"spec": {"schedulingGates": None}}, MERGE).status == 200


def test_generate_name(server, make_pod):
    pod = make_pod()
    pod["metadata"] = {"generateName": "web-"}
    names = {server.post(PODS, pod).json["metadata"]["name"] for _ in range(5)}
    assert len(names) == 5
    assert all(len(name) == len("web-") + 5 for name in names)


def test_dry_run_stores_nothing(server, make_pod):
    answer = server.post(f"{PODS}?dryRun=All", make_pod())
    assert (answer.status, answer.json["status"]["phase"]) == (201, "Pending")
    assert server.get(f"{PODS}/web").status == 404
    server.post(PODS, make_pod())
    server.delete(f"{PODS}/web?dryRun=All")
    assert server.get(f"{PODS}/web").status == 200
    refused(server.post(f"{PODS}?dryRun=Some", make_pod("b")), 422, "Invalid")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param({"spec": {"nodeName": "n1"}}, "pod updates may not change", id="node"),
        pytest.param({"spec": {"nodeSelector": {"a": "b"}}}, "pod updates may", id="selector"),
        pytest.param(
            {"spec": {"tolerations": []}}, "existing toleration can not", id="fewer tolerations"
        ),
    ],
)
def test_what_a_pod_may_not_change(server, make_pod, change, text):
    server.post(PODS, make_pod(tolerations=[{"key": "a", "operator": "Exists"}]))
    refused(server.patch(f"{PODS}/web", change, MERGE), 422, "Invalid", text)


def test_status_is_updated_through_its_subresource_only(server):
    server.post(DEPLOYMENTS, deployment())
    both = {"spec": {"replicas": 5}, "status": {"replicas": 3}}
    new = server.patch(f"{DEPLOYMENTS}/web/status", both, MERGE).json
    assert (new["spec"]["replicas"], new["status"]["replicas"]) == (2, 3)
    assert new["metadata"]["generation"] == 1
    new = server.patch(f"{DEPLOYMENTS}/web", both | {"status": {"replicas": 9}}, MERGE).json
    assert (new["spec"]["replicas"], new["status"]["replicas"]) == (5, 3)
    assert new["metadata"]["generation"] == 2


def test_scale(server):
    server.post(DEPLOYMENTS, deployment())
    scale = server.get(f"{DEPLOYMENTS}/web/scale").json
    assert (scale["spec"], scale["status"]["selector"]) == ({"replicas": 2}, "app=web")
    scale["spec"]["replicas"] = 4
    assert server.put(f"{DEPLOYMENTS}/web/scale", scale).json["spec"]["replicas"] == 4
    refused(server.put(f"{DEPLOYMENTS}/web/scale", scale), 409, "Conflict")
    patched = server.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 0}}, MERGE)
    assert patched.json["spec"] == {}
    answer = server.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": -1}}, MERGE)
    refused(answer, 422, "Invalid")


@pytest.mark.parametrize(
    ("policy", "finalizers"),
    [
        pytest.param("Foreground", ["foregroundDeletion"], id="foreground"),
        pytest.param("Orphan", ["orphan"], id="orphan"),
        pytest.param("Background", None, id="background"),
    ],
)
def test_propagation(server, policy, finalizers):
    server.post(DEPLOYMENTS, deployment())
    answer = server.delete(f"{DEPLOYMENTS}/web", {"propagationPolicy": policy})
    if finalizers is None:
        assert answer.json["status"] == "Success"
        assert server.get(f"{DEPLOYMENTS}/web").status == 404
    else:
        assert answer.json["metadata"]["finalizers"] == finalizers
        assert "deletionTimestamp" in answer.json["metadata"]


def test_finalizers_delay_the_deletion(server):
    server.post(DEPLOYMENTS, deployment(finalizers=["example.com/wait"]))
    server.delete(f"{DEPLOYMENTS}/web")
    assert server.get(f"{DEPLOYMENTS}/web").json["metadata"]["deletionGracePeriodSeconds"] == 0
    server.patch(f"{DEPLOYMENTS}/web", {"metadata": {"finalizers": None}}, MERGE)
    assert server.get(f"{DEPLOYMENTS}/web").status == 404


def test_preconditions(server, make_pod):
    pod = server.post(PODS, make_pod()).json
    for wrong in ({"uid": "x"}, {"resourceVersion": "1"}):
        answer = server.delete(f"{PODS}/web", {"preconditions": wrong})
        refused(answer, 409, "Conflict", "recondition")
    right = {"uid": pod["metadata"]["uid"]}
    assert server.delete(f"{PODS}/web", {"preconditions": right}).status == 200


def test_delete_many(server, make_pod):
    for name in ("a", "b", "c"):
        server.post(PODS, make_pod(name))
    server.delete(f"{PODS}?labelSelector=app!=b")
    assert [each["metadata"]["name"] for each in server.get(PODS).json["items"]] == ["b"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("fieldSelector=spec.nodeName=n1", ["b"], id="by node"),
        pytest.param("fieldSelector=spec.nodeName=", ["a", "c"], id="without a node"),
        pytest.param("fieldSelector=metadata.name!=a,status.phase=Pending", ["b", "c"], id="two"),
        pytest.param("labelSelector=app%20in%20(a,c)", ["a", "c"], id="by label"),
        pytest.param("labelSelector=!app", [], id="without a label"),
    ],
)
def test_selectors(server, make_pod, query, names):
    server.post(PODS, make_pod("a"))
    server.post(PODS, make_pod("b", nodeName="n1"))
    server.post(PODS, make_pod("c"))
    found = server.get(f"/api/v1/pods?{query}").json["items"]
    assert [each["metadata"]["name"] for each in found] == names


def test_watch_begins_with_what_is_there(server, make_pod):
    server.post(PODS, make_pod("a"))
    seen = server.watch(f"{PODS}?watch=1&timeoutSeconds=0&resourceVersion=0")
    assert [(each["type"], each["object"]["metadata"]["name"]) for each in seen] == [("ADDED", "a")]


def test_initial_events_end_with_a_bookmark(server, make_pod):
    server.post(PODS, make_pod("a"))
    query = "watch=1&timeoutSeconds=0&sendInitialEvents=true&allowWatchBookmarks=true"
    seen = server.watch(f"{PODS}?{query}&resourceVersionMatch=NotOlderThan")
    assert [each["type"] for each in seen] == ["ADDED", "BOOKMARK"]
    meta = seen[1]["object"]["metadata"]
    assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(meta["resourceVersion"]) == server.store.version


def test_objects_start_and_stop_to_match_a_watch(server, make_pod):
    server.post(PODS, make_pod("a"))
    version = server.store.version
    server.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "1"}}}, MERGE)
    server.patch(f"{PODS}/a", {"metadata": {"labels": {"y": "1"}}}, MERGE)
    server.patch(f"{PODS}/a", {"metadata": {"labels": {"x": None}}}, MERGE)
    server.delete(f"{PODS}/a")
    query = f"watch=1&timeoutSeconds=0&resourceVersion={version}&labelSelector=x"
    seen = server.watch(f"{PODS}?{query}")
    assert [each["type"] for each in seen] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(each["object"]["metadata"]["resourceVersion"]) for each in seen]
    assert versions == [version + 1, version + 2, version + 3]
    assert seen[2]["object"]["metadata"]["labels"]["x"] == "1"


def test_watch_of_a_future_version_is_expired(server):
    seen = server.watch(f"{PODS}?watch=1&resourceVersion=99999")
    assert [(each["type"], each["object"]["code"]) for each in seen] == [("ERROR", 410)]


def test_a_table(server, make_pod):
    server.post(PODS, make_pod("a", nodeName="n1"))
    server.now += 65
    table = server.get(PODS, Accept=TABLE).json
    heads = [(each["name"], each["priority"]) for each in table["columnDefinitions"]]
    assert heads == [
        ("Name", 0), ("Ready", 0), ("Status", 0), ("Restarts", 0), ("Age", 0), ("IP", 1),
        ("Node", 1), ("Nominated Node", 1), ("Readiness Gates", 1),
    ]  # fmt: skip
    assert [row["cells"] for row in table["rows"]] == [
        ["a", "0/1", "Pending", "0", "65s", "<none>", "n1", "<none>", "<none>"]
    ]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_custom_resources(server):
    definition = {
        "metadata": {"name": "podgroups.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "PodGroup", "plural": "podgroups", "shortNames": ["pg"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [
                        {"name": "Min", "type": "integer", "jsonPath": ".spec.minMember"}
                    ],
                }
            ],
        },
    }
    groups = "/apis/example.com/v1/namespaces/default/podgroups"
    assert server.get(groups).status == 404
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    created = server.post(definitions, definition).json
    conditions = {each["type"]: each["status"] for each in created["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    group = {"metadata": {"name": "a"}, "spec": {"minMember": 3}}
    stored = server.post(groups, group).json
    assert (stored["kind"], stored["spec"]) == ("PodGroup", {"minMember": 3})
    assert server.get(groups, Accept=TABLE).json["rows"][0]["cells"] == ["a", 3]
    strategic = "application/strategic-merge-patch+json"
    refused(server.patch(f"{groups}/a", {}, strategic), 415, "UnsupportedMediaType")
    server.delete(f"{definitions}/podgroups.example.com")
    assert server.get(groups).status == 404
    server.post(definitions, definition)
    assert server.get(groups).json["items"] == []  # They went with their definition.


def test_definition_cannot_replace_a_built_in_kind(server):
    names = {"kind": "Event", "plural": "others"}
    spec = {"group": "events.k8s.io", "scope": "Namespaced", "names": names}
    spec["versions"] = [{"name": "v1", "served": True, "storage": True}]
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    body = {"metadata": {"name": "others.events.k8s.io"}, "spec": spec}
    assert server.post(definitions, body).status == 201
    assert server.get("/apis/events.k8s.io/v1/others").status == 404
    assert server.get("/apis/events.k8s.io/v1/events").status == 200


@pytest.mark.parametrize(
    ("origin", "host", "code"),
    [
        pytest.param("http://evil.example", None, 403, id="a page of another site"),
        pytest.param("http://evil.example", "evil.example", 403, id="that claims our address"),
        pytest.param("http://127.0.0.1:6440", "127.0.0.1:6440", 200, id="a page of ours"),
        pytest.param("http://localhost:6440", "localhost:6440", 200, id="by name"),
        pytest.param("null", None, 403, id="a page of nowhere"),
    ],
)
def test_requests_of_other_sites_are_rejected(server, origin, host, code):
    headers = {"Origin": origin} | ({"Host": host} if host else {})
    assert server.get("/api", **headers).status == code


@pytest.mark.parametrize(
    ("host", "code"),
    [
        pytest.param("evil.example", 403, id="a name that is rebound"),
        pytest.param("evil.example:6440", 403, id="with our port"),
        pytest.param("192.168.1.7:6440", 403, id="another address"),
        pytest.param("localhost.evil.example", 403, id="a name that begins with ours"),
        pytest.param("localhost:6440", 200, id="localhost"),
        pytest.param("127.0.0.1:6440", 200, id="IPv4"),
        pytest.param("[::1]:6440", 200, id="IPv6"),
    ],
)
def test_without_a_token_only_loopback_names_are_served(serve, host, code):
    assert serve().get("/api", Host=host).status == code
    with_token = serve(settings=AppSettings(token="0123456789"))
    assert with_token.get("/api", Host=host, Authorization="Bearer 0123456789").status == 200


def test_apply_creates_changes_and_removes(server):
    media, path = "application/apply-patch+yaml", f"{DEPLOYMENTS}/web?fieldManager=me"
    assert server.patch(path, deployment(labels={"a": "1"}), media).status == 201
    applied = server.patch(path, deployment(replicas=3), media)
    assert (applied.status, applied.json["spec"]["replicas"]) == (200, 3)
    assert "labels" not in applied.json["metadata"]
    refused(
        server.patch(f"{DEPLOYMENTS}/web?fieldManager=you", deployment(replicas=4), media),
        409,
        "Conflict",
        'conflict with "me"',
    )
    forced = f"{DEPLOYMENTS}/web?fieldManager=you&force=true"
    assert server.patch(forced, deployment(replicas=4), media).json["spec"]["replicas"] == 4


def test_discovery(server):
    v1 = server.get("/api/v1").json
    pods = {each["name"]: each for each in v1["resources"]}
    assert pods["pods"]["shortNames"] == ["po"]
    assert pods["pods/eviction"]["kind"] == "Eviction"
    groups = {each["name"] for each in server.get("/apis").json["groups"]}
    assert {"apps", "policy", "storage.k8s.io", "events.k8s.io"} <= groups
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert server.get("/apis", Accept=accept).json["kind"] == "APIGroupDiscoveryList"
    (core,) = server.get("/api", Accept=accept).json["items"]
    listed = [each["resource"] for each in core["versions"][0]["resources"]]
    assert {"pods", "bindings"} <= set(listed)
    assert server.get("/version").json["minor"] == "36"
    assert server.get("/healthz").body == b"ok"


def test_token_is_required(serve):
    server = serve(settings=AppSettings(token="secret-token"))
    refused(server.get("/api"), 401, "Unauthorized")
    refused(server.get("/api", Authorization="Bearer other"), 401, "Unauthorized")
    assert server.get("/api", Authorization="Bearer secret-token").status == 200


class SlowDisk:
    """A journal that writes only when a test calls it."""

    def __init__(self):
        self.rows = []
        self.written = threading.Event()

    def load(self):
        return [], 1, 1

    def start(self, notify):
        self.notify = notify
        self.flush()  # What the server itself put in.

    def write(self, row):
        self.rows.append(row)
        self.written.set()

    def flush(self):
        self.notify(self.rows[-1].version, None)

    def close(self):
        pass


def test_responses_wait_until_the_write_is_durable(serve, make_pod):
    disk = SlowDisk()
    server = serve(journal=disk)
    server.get("/api/v1/namespaces")
    disk.written.clear()
    with ThreadPoolExecutor() as pool:
        created = pool.submit(server.post, PODS, make_pod("a"))
        assert disk.written.wait(60)  # The pod is in the store, and on no disk.
        listed = pool.submit(server.get, PODS)
        watched = pool.submit(server.watch, f"{PODS}?watch=1&timeoutSeconds=0")
        done, _ = futures.wait([created, listed, watched], timeout=0.3)
        assert not done
        disk.flush()
        pod = created.result(60).json
        assert listed.result(60).json["items"] == [without_type(pod)]
        assert [each["object"] for each in watched.result(60)] == [pod]


def test_what_is_acknowledged_is_on_the_disk(serve, make_pod, tmp_path):
    server = serve(journal=SqliteJournal(tmp_path))
    server.post(PODS, make_pod("a"))
    pod = server.get(f"{PODS}/a").json
    seen = server.watch(f"{PODS}?watch=1&timeoutSeconds=0")
    assert seen == [{"type": "ADDED", "object": pod}]
    server.close()
    again = serve(journal=SqliteJournal(tmp_path))
    assert json.loads(again.get(f"{PODS}/a").body) == pod


def test_reads_go_on_while_the_disk_is_full(serve, make_pod, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "RETRY_SECONDS", 0.02)
    journal = SqliteJournal(tmp_path)
    server = serve(journal=journal)
    assert server.post(PODS, make_pod("before")).status == 201
    (pages,) = journal._database.execute("PRAGMA page_count").fetchone()
    journal._database.execute(f"PRAGMA max_page_count={pages}")
    large = make_pod("large", containers=[{"name": "a", "image": "x" * 100_000}])
    refused(server.post(PODS, large), 503, "ServiceUnavailable", "disk is full")
    refused(server.post(PODS, make_pod("next")), 503, "ServiceUnavailable", "disk is full")
    assert [each["metadata"]["name"] for each in server.get(PODS).json["items"]] == ["before"]
    assert server.get(f"{PODS}/before").status == 200
    refused(server.get(f"{PODS}/large"), 404, "NotFound")
    assert server.get("/readyz").status == 503
    journal._database.execute("PRAGMA max_page_count=1000000")
    deadline = time.monotonic() + 30
    while server.get("/readyz").status != 200:
        assert time.monotonic() < deadline
    assert server.post(PODS, make_pod("next")).status == 201
    found = {each["metadata"]["name"] for each in server.get(PODS).json["items"]}
    assert found == {"before", "large", "next"}


def test_repeated_fields_are_refused_by_strict_validation(server):
    body = (
        b'{"metadata": {"name": "x"}, "data": {"a": "1", "a": "2"}, "rubbish": [{"b": 1, "b": 2}]}'
    )
    path = "/api/v1/namespaces/default/configmaps?fieldValidation="
    answer = server.post(f"{path}Strict", body)
    text = 'unknown field "rubbish", duplicate field "data.a", duplicate field "rubbish[0].b"'
    refused(answer, 400, "BadRequest", f"strict decoding error: {text}")
    created = server.post(f"{path}Warn", body)
    assert created.status == 201
    assert '299 - "duplicate field \\"data.a\\""' in created.headers.get_all("Warning")
    yaml = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata:\n  a: b\n  a: c\n"
    answer = server.post(f"{path}Strict", yaml, media="application/yaml")
    refused(answer, 400, "BadRequest", 'line 6: key "a" already set in map')


def test_a_new_default_of_a_definition_is_in_stored_objects(server):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "hats", "singular": "hat", "kind": "Hat", "listKind": "HatList"}
    spec = {"group": "x.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    server.post(definitions, {"metadata": {"name": "hats.x.example.com"}, "spec": spec})
    hats = "/apis/x.example.com/v1/namespaces/default/hats"
    hat = {"apiVersion": "x.example.com/v1", "kind": "Hat", "metadata": {"name": "h"}}
    assert "a" not in server.post(hats, hat).json
    field = "/spec/versions/0/schema/openAPIV3Schema/properties/a/default"
    patch = [{"op": "add", "path": field, "value": "A"}]
    changed = server.patch(
        f"{definitions}/hats.x.example.com", patch, "application/json-patch+json"
    )
    assert changed.status == 200
    assert server.get(f"{hats}/h").json["a"] == "A"
    assert server.get(hats).json["items"][0]["a"] == "A"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/healthz", "ok"),
        ("/livez/ping", "ok"),
        ("/readyz?verbose", "[+]ping ok\n[+]store ok\nreadyz check passed\n"),
    ],
)
def test_health(server, path, text):
    assert server.get(path).body.decode() == text
