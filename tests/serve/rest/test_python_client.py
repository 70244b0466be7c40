"""The API with the official Python client."""

import threading

import pytest
from kubernetes import client, watch
from kubernetes.client import ApiException

from moorage.cluster.resources import DISRUPTION_BUDGETS, PODS

pytestmark = pytest.mark.filterwarnings("ignore")  # The client warns of things within itself.


@pytest.fixture
def connected(server):
    configuration = client.Configuration(host=server.url)
    with client.ApiClient(configuration) as api_client:
        yield api_client


@pytest.fixture
def core(connected):
    return client.CoreV1Api(connected)


def pod(name, **spec):
    containers = [client.V1Container(name="app", image="nginx")]
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels={"app": name}),
        spec=client.V1PodSpec(containers=containers, **spec),
    )


def binding(name, node="n1", uid=None):
    return client.V1Binding(
        metadata=client.V1ObjectMeta(name=name, uid=uid),
        target=client.V1ObjectReference(kind="Node", name=node),
    )


def bind(core, body):
    # The client wants a Binding back and gets a Status, as from any API server.
    core.create_namespaced_binding("default", body, _preload_content=False)


def test_create_list_and_read(core):
    for name in ("a", "b", "c"):
        core.create_namespaced_pod("default", pod(name))
    found = core.list_namespaced_pod("default", label_selector="app in (a,b)")
    assert [each.metadata.name for each in found.items] == ["a", "b"]
    assert core.read_namespaced_pod("a", "default").status.phase == "Pending"


def test_pages_of_a_list_have_one_version(core):
    for name in ("a", "b", "c"):
        core.create_namespaced_pod("default", pod(name))
    first = core.list_namespaced_pod("default", limit=2)
    core.delete_namespaced_pod("c", "default")
    core.create_namespaced_pod("default", pod("d"))
    token = first.metadata._continue
    second = core.list_namespaced_pod("default", limit=2, _continue=token)
    assert first.metadata.remaining_item_count == 1
    assert [each.metadata.name for each in second.items] == ["c"]
    assert second.metadata.resource_version == first.metadata.resource_version


def test_watch_and_resume(core):
    core.create_namespaced_pod("default", pod("a"))
    seen = []
    for event in watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=60):
        seen.append((event["type"], event["object"].metadata.name))
        version = event["object"].metadata.resource_version
        if len(seen) == 1:
            core.create_namespaced_pod("default", pod("b"))
        elif len(seen) == 2:
            break
    assert seen == [("ADDED", "a"), ("ADDED", "b")]
    core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"x": "y"}}})
    core.delete_namespaced_pod("b", "default")
    again = watch.Watch().stream(
        core.list_namespaced_pod, "default", resource_version=version, timeout_seconds=1
    )
    assert [(each["type"], each["object"].metadata.name) for each in again] == [
        ("MODIFIED", "a"),
        ("DELETED", "b"),
    ]


def test_watch_streams_later_changes(core):
    changes = []

    def listen():
        stream = watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=60)
        for event in stream:
            changes.append(event["object"].metadata.name)
            if len(changes) == 20:
                return

    listener = threading.Thread(target=listen)
    listener.start()
    for number in range(20):
        core.create_namespaced_pod("default", pod(f"p{number:02}"))
    listener.join(timeout=60)
    assert changes == [f"p{number:02}" for number in range(20)]


def test_update_of_an_old_version_is_a_conflict(core):
    old = core.create_namespaced_pod("default", pod("a"))
    core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"x": "y"}}})
    old.metadata.labels["z"] = "1"
    with pytest.raises(ApiException, match="the object has been modified") as refused:
        core.replace_namespaced_pod("a", "default", old)
    assert refused.value.status == 409


def test_three_sorts_of_patches(core):
    core.create_namespaced_pod("default", pod("a"))
    operations = [{"op": "add", "path": "/metadata/labels/x", "value": "1"}]
    patched = core.patch_namespaced_pod("a", "default", operations)
    assert patched.metadata.labels == {"app": "a", "x": "1"}
    strategic = {"spec": {"containers": [{"name": "app", "image": "nginx:2"}]}}
    patched = core.patch_namespaced_pod("a", "default", strategic)
    assert [each.image for each in patched.spec.containers] == ["nginx:2"]


@pytest.mark.parametrize(
    ("spec", "body", "code", "text"),
    [
        pytest.param({}, {}, None, "", id="a pod that waits"),
        pytest.param({"node_name": "n2"}, {}, 409, "is already assigned to node", id="bound"),
        pytest.param(
            {"scheduling_gates": [client.V1PodSchedulingGate(name="wait")]},
            {},
            409,
            "has non-empty .spec.schedulingGates",
            id="gated",
        ),
        pytest.param({}, {"uid": "another"}, 409, "Precondition failed: UID", id="another pod"),
        pytest.param({}, {"node": ""}, 500, "target.name: Required value", id="no node"),
    ],
)
def test_binding(core, spec, body, code, text):
    core.create_namespaced_pod("default", pod("a", **spec))
    if code is None:
        bind(core, binding("a", **body))
        bound = core.read_namespaced_pod("a", "default")
        assert bound.spec.node_name == "n1"
        assert [(each.type, each.status) for each in bound.status.conditions] == [
            ("PodScheduled", "True")
        ]
        return
    with pytest.raises(ApiException, match=text) as refused:
        bind(core, binding("a", **body))
    assert refused.value.status == code


def test_pod_that_is_being_deleted_is_not_bound(core):
    gone = pod("a")
    gone.metadata.finalizers = ["example.com/wait"]
    core.create_namespaced_pod("default", gone)
    core.delete_namespaced_pod("a", "default")
    with pytest.raises(ApiException, match="is being deleted, cannot be assigned to a host"):
        bind(core, binding("a"))


def evict(core, name):
    body = client.V1Eviction(metadata=client.V1ObjectMeta(name=name))
    core.create_namespaced_pod_eviction(name, "default", body, _preload_content=False)


def test_eviction_respects_budgets(server, core):
    for name in ("a", "b"):
        core.create_namespaced_pod("default", pod(name, node_name="n1"))
        ready = server.store.get(PODS, "default", name)
        conditions = [{"type": "Ready", "status": "True"}]
        status = {**ready["status"], "phase": "Running", "conditions": conditions}
        server.api.replace(PODS, {**ready, "status": status})
    server.api.create(
        DISRUPTION_BUDGETS,
        {
            "metadata": {"name": "calm"},
            "spec": {
                "minAvailable": 1,
                "selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            },
        },
    )
    with pytest.raises(ApiException, match="still being processed") as refused:
        evict(core, "a")
    assert refused.value.headers["Retry-After"] == "10"
    budget = server.store.get(DISRUPTION_BUDGETS, "default", "calm")
    status = {
        "observedGeneration": 1,
        "disruptionsAllowed": 1,
        "currentHealthy": 2,
        "desiredHealthy": 1,
    }
    server.api.replace(DISRUPTION_BUDGETS, {**budget, "status": status})
    evict(core, "a")
    assert core.read_namespaced_pod("a", "default").metadata.deletion_timestamp is not None
    with pytest.raises(ApiException, match="needs 1 healthy pods and has 2 currently") as refused:
        evict(core, "b")
    assert refused.value.status == 429
    assert '"reason":"DisruptionBudget"' in refused.value.body


def test_grace_and_force(server, core):
    core.create_namespaced_pod("default", pod("a", node_name="n1"))
    core.delete_namespaced_pod("a", "default")
    ending = core.read_namespaced_pod("a", "default")
    assert ending.metadata.deletion_grace_period_seconds == 30
    assert ending.metadata.deletion_timestamp.timestamp() == server.now + 30
    core.delete_namespaced_pod("a", "default", grace_period_seconds=0)
    with pytest.raises(ApiException, match="not found"):
        core.read_namespaced_pod("a", "default")


def test_too_old_a_version_is_gone(serve, make_pod):
    server = serve(log_size=4)
    for number in range(12):
        server.post("/api/v1/namespaces/default/pods", make_pod(f"p{number}"))
    configuration = client.Configuration(host=server.url)
    with client.ApiClient(configuration) as api_client:
        core = client.CoreV1Api(api_client)
        events = watch.Watch().stream(
            core.list_namespaced_pod, "default", resource_version="8", timeout_seconds=1
        )
        with pytest.raises(ApiException, match="too old resource version") as refused:
            list(events)
    assert refused.value.status == 410


def test_leases_and_events(connected, core):
    leases = client.CoordinationV1Api(connected)
    spec = client.V1LeaseSpec(holder_identity="me", lease_duration_seconds=15)
    meta = client.V1ObjectMeta(name="leader")
    leases.create_namespaced_lease("default", client.V1Lease(metadata=meta, spec=spec))
    assert leases.read_namespaced_lease("leader", "default").spec.holder_identity == "me"
    events = client.EventsV1Api(connected)
    body = {
        "metadata": {"name": "told"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "a", "namespace": "default"},
        "note": "0/3 nodes are available",
        "reason": "FailedScheduling",
        "reportingController": "default-scheduler",
        "type": "Warning",
    }
    events.create_namespaced_event("default", body)
    old = core.read_namespaced_event("told", "default")
    assert (old.message, old.involved_object.name) == ("0/3 nodes are available", "a")
    chosen = events.list_namespaced_event("default", field_selector="regarding.name=a")
    assert [each.note for each in chosen.items] == ["0/3 nodes are available"]
