"""The real kubectl against `moorage serve`: common commands.

The tests of this file share a server and use names of their own.
"""

import json
import signal

import pytest


def deployment(name, replicas=2, image="web:1", cpu="100m", **spec):
    labels = {"app": name}
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], **spec},
            },
        },
    }


def pod(name, cpu="100m", **spec):
    container = {"name": "c", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }


def rows(table):
    return [line.split() for line in table.splitlines()[1:]]


def test_get_nodes(server):
    got = rows(server.kubectl("get", "nodes"))
    assert [row[:2] for row in got] == [[f"node-{number}", "Ready"] for number in (1, 2, 3, 4)]


def test_create_and_get_wide(server):
    assert server.kubectl("create", "-f", "-", manifest=deployment("shop")) == (
        "deployment.apps/shop created\n"
    )
    server.kubectl("rollout", "status", "deployment/shop", "--timeout=60s")
    table = server.kubectl("get", "pods", "-l", "app=shop", "-o", "wide")
    head = table.splitlines()[0].split()
    assert head[:4] == ["NAME", "READY", "STATUS", "RESTARTS"]
    assert {"IP", "NODE"} <= set(head)
    assert len(rows(table)) == 2
    for row in rows(table):
        assert row[1:3] == ["1/1", "Running"]
        assert row[head.index("NODE")].startswith("node-")


def test_create_by_name_change_and_undo(server):
    """The typed commands send protobuf in newer versions."""
    server.kubectl("create", "deployment", "quick", "--image=web:1", "--replicas=1")
    server.kubectl("rollout", "status", "deployment/quick", "--timeout=60s")
    server.kubectl("set", "image", "deployment/quick", "web=web:2")
    server.kubectl("rollout", "status", "deployment/quick", "--timeout=60s")
    server.kubectl("rollout", "undo", "deployment/quick")
    server.kubectl("rollout", "status", "deployment/quick", "--timeout=60s")
    sets = server.json("get", "replicasets", "-l", "app=quick")["items"]
    got = sorted(
        (each["spec"]["template"]["spec"]["containers"][0]["image"], each["spec"]["replicas"])
        for each in sets
    )
    assert got == [("web:1", 1), ("web:2", 0)]


def test_create_twice_fails(server):
    server.kubectl("create", "-f", "-", manifest=pod("twin"))
    printed = server.kubectl("create", "-f", "-", manifest=pod("twin"), code=1)
    assert 'pods "twin" already exists' in printed


def test_apply_twice_with_a_change(server):
    first, second = deployment("applied"), deployment("applied", image="web:2", replicas=3)
    assert server.kubectl("apply", "-f", "-", manifest=first) == "deployment.apps/applied created\n"
    unchanged = server.kubectl("apply", "-f", "-", manifest=first)
    assert unchanged == "deployment.apps/applied unchanged\n"
    changed = server.kubectl("apply", "-f", "-", manifest=second)
    assert changed == "deployment.apps/applied configured\n"
    server.kubectl("rollout", "status", "deployment/applied", "--timeout=60s")
    pods = server.json("get", "pods", "-l", "app=applied")["items"]
    alive = [each for each in pods if "deletionTimestamp" not in each["metadata"]]
    assert [each["spec"]["containers"][0]["image"] for each in alive] == ["web:2"] * 3
    history = server.kubectl("rollout", "history", "deployment/applied")
    assert [line.split()[0] for line in history.split("CHANGE-CAUSE")[1].strip().splitlines()] == [
        "1",
        "2",
    ]


def test_server_side_apply(server):
    arguments = ("apply", "--server-side", "-f", "-")
    server.kubectl(*arguments, manifest=deployment("sided"))
    server.kubectl(*arguments, manifest=deployment("sided", replicas=1))
    assert server.json("get", "deployment", "sided")["spec"]["replicas"] == 1


def test_describe_a_pending_pod_and_see_the_reason(server, until):
    server.kubectl("create", "-f", "-", manifest=pod("huge", cpu="100"))

    def told():
        printed = server.kubectl("describe", "pod", "huge")
        return printed if "FailedScheduling" in printed else None

    printed = until(told)
    assert ["Status:", "Pending"] in rows(printed)
    assert "0/4 nodes are available: 4 Insufficient cpu." in printed
    assert "default-scheduler" in printed


def test_scale(server, until):
    server.kubectl("create", "-f", "-", manifest=deployment("scaled", replicas=1))
    assert "scaled" in server.kubectl("scale", "deployment/scaled", "--replicas=4")
    server.kubectl("rollout", "status", "deployment/scaled", "--timeout=60s")
    assert rows(server.kubectl("get", "deployment", "scaled"))[0][1:4] == ["4/4", "4", "4"]
    server.kubectl("scale", "deployment/scaled", "--replicas=0")
    until(lambda: "No resources found" in server.kubectl("get", "pods", "-l", "app=scaled"))


def test_cordon_and_uncordon(server, until):
    assert server.kubectl("cordon", "node-1") == "node/node-1 cordoned\n"
    assert rows(server.kubectl("get", "node", "node-1"))[0][1] == "Ready,SchedulingDisabled"
    pinned = pod("pinned", nodeSelector={"kubernetes.io/hostname": "node-1"})
    server.kubectl("create", "-f", "-", manifest=pinned)
    until(lambda: "node(s) were unschedulable" in server.kubectl("describe", "pod", "pinned"))
    assert server.kubectl("uncordon", "node-1") == "node/node-1 uncordoned\n"
    server.kubectl("wait", "pod/pinned", "--for=condition=Ready", "--timeout=60s")


def test_taint_and_untaint(server, until):
    server.kubectl("taint", "node", "node-2", "team=blue:NoSchedule")
    kept_away = pod("away", nodeSelector={"kubernetes.io/hostname": "node-2"})
    server.kubectl("create", "-f", "-", manifest=kept_away)
    until(lambda: "untolerated taint" in server.kubectl("describe", "pod", "away"))
    server.kubectl("taint", "node", "node-2", "team=blue:NoSchedule-")
    server.kubectl("wait", "pod/away", "--for=condition=Ready", "--timeout=60s")


def test_drain_waits_for_a_disruption_budget(server, until):
    selector = {"kubernetes.io/hostname": "node-3"}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guarded"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "guarded"}}},
    }
    guarded = deployment("guarded", replicas=2, nodeSelector=selector)
    server.kubectl("create", "-f", "-", manifest=[guarded, budget])
    server.kubectl("rollout", "status", "deployment/guarded", "--timeout=60s")
    until(lambda: server.json("get", "pdb", "guarded")["status"].get("currentHealthy") == 2)
    printed = server.kubectl(
        "drain", "node-3", "--ignore-daemonsets", "--force", "--timeout=1s", code=1
    )
    assert "Cannot evict pod as it would violate the pod's disruption budget." in printed
    assert len(server.json("get", "pods", "-l", "app=guarded")["items"]) == 2
    # As soon as others may take their place, the drain gets through.
    patch = {"spec": {"template": {"spec": {"nodeSelector": None}}}}
    server.kubectl("patch", "deployment", "guarded", "-p", json.dumps(patch))
    server.kubectl("rollout", "status", "deployment/guarded", "--timeout=60s")
    drained = server.kubectl("drain", "node-3", "--ignore-daemonsets", "--force", "--timeout=60s")
    assert "node/node-3 drained" in drained
    nodes = {
        p["spec"]["nodeName"] for p in server.json("get", "pods", "-l", "app=guarded")["items"]
    }
    assert "node-3" not in nodes
    server.kubectl("uncordon", "node-3")


def test_delete(server):
    server.kubectl("create", "-f", "-", manifest=deployment("doomed"))
    server.kubectl("rollout", "status", "deployment/doomed", "--timeout=60s")
    server.kubectl("delete", "deployment", "doomed", "--cascade=foreground")
    assert "NotFound" in server.kubectl("get", "deployment", "doomed", code=1)
    assert "No resources found" in server.kubectl("get", "pods", "-l", "app=doomed")


def test_delete_a_namespace_with_its_content(server):
    server.kubectl("create", "namespace", "stage")
    server.kubectl("create", "-n", "stage", "-f", "-", manifest=pod("actor"))
    server.kubectl("wait", "-n", "stage", "pod/actor", "--for=condition=Ready", "--timeout=60s")
    server.kubectl("delete", "namespace", "stage", "--timeout=60s")
    assert "NotFound" in server.kubectl("get", "namespace", "stage", code=1)


def test_watch(server, until):
    watching = server.start_kubectl("get", "pods", "--watch", "-l", "app=watched", "-o", "wide")
    try:
        server.kubectl("create", "-f", "-", manifest=pod("watched"))
        server.kubectl("wait", "pod/watched", "--for=condition=Ready", "--timeout=60s")
        server.kubectl("delete", "pod", "watched")
        seen = []
        for line in watching.stdout:
            seen.append(line.split())
            if "Running" in seen[-1]:
                break
    finally:
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)
    states = [row[2] for row in seen[1:]]
    assert states[0] == "Pending"
    assert states[-1] == "Running"


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        pytest.param("StatefulSet", {"serviceName": "x", "replicas": 1}, id="stateful set"),
        pytest.param("DaemonSet", {}, id="daemon set"),
    ],
)
def test_rollouts_of_other_workloads(server, kind, spec):
    made = deployment(f"a-{kind.lower()}")
    del made["spec"]["replicas"]
    made = {**made, "kind": kind, "spec": {**made["spec"], **spec}}
    server.kubectl("apply", "-f", "-", manifest=made)
    name = f"{kind.lower()}/a-{kind.lower()}"
    server.kubectl("rollout", "status", name, "--timeout=60s")
    server.kubectl("set", "image", name, "c=web:2")
    printed = server.kubectl("rollout", "status", name, "--timeout=60s")
    assert "successfully rolled out" in printed or "roll out complete" in printed


def test_job(server):
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sums"},
        "spec": {
            "completions": 3,
            "parallelism": 3,
            "template": {
                "metadata": {"annotations": {"moorage.dev/run-seconds": "1"}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "c", "image": "sum:1"}],
                },
            },
        },
    }
    server.kubectl("create", "-f", "-", manifest=job)
    server.kubectl("wait", "job/sums", "--for=condition=Complete", "--timeout=60s")
    assert rows(server.kubectl("get", "job", "sums"))[0][1:3] == ["Complete", "3/3"]


def test_not_ready_node_and_its_recovery(server):
    server.kubectl("annotate", "node", "node-4", "moorage.dev/kubelet=not-ready")
    server.kubectl("wait", "node/node-4", "--for=condition=Ready=False", "--timeout=60s")
    assert "node.kubernetes.io/not-ready:NoExecute" in server.kubectl("describe", "node", "node-4")
    server.kubectl("annotate", "node", "node-4", "moorage.dev/kubelet-")
    server.kubectl("wait", "node/node-4", "--for=condition=Ready", "--timeout=60s")


def test_ctrl_c_stops_the_server_with_open_watches(serving, kubectl_is_there):
    with serving("--nodes", "1") as started:
        watching = started.start_kubectl("get", "pods", "--watch")
        started.kubectl("get", "nodes")
        assert started.stop() == 0
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)


def test_without_a_scheduler_pods_stay_pending(serving, kubectl_is_there):
    with serving("--nodes", "1", "--no-scheduler") as started:
        assert "nobody schedules" in started.greeting
        started.kubectl("create", "-f", "-", manifest=pod("waits"))
        with pytest.raises(AssertionError, match="timed out"):
            started.kubectl("wait", "pod/waits", "--for=condition=Ready", "--timeout=1s")
        assert started.stop(signal.SIGTERM) == 0


def test_tls_and_a_token_for_other_addresses(serving, kubectl_is_there, tmp_path):
    (tmp_path / "token").write_text("0123456789abcdef\n")
    with serving(
        "--nodes", "1", "--bind-address", "0.0.0.0", "--token-file", str(tmp_path / "token")
    ) as started:
        assert started.url.startswith("https://127.0.0.1:")
        assert "node-1" in started.kubectl("get", "nodes")
        stranger = started.kubectl("get", "nodes", "--token=guessed-wrong", code=1)
        assert "Unauthorized" in stranger or "logged in" in stranger
    assert oct((tmp_path / "kubeconfig").stat().st_mode & 0o777) == "0o600"


def test_device_claims(serving, kubectl_is_there, until, tmp_path):
    devices = [{"driver": "gpu.example.com", "class": "gpu", "name": "gpu", "count": 2}]
    template = {"status": {"allocatable": {"cpu": "8", "memory": "32Gi"}}}
    pool = {"count": 1, "template": template, "devices": devices}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    claims = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
    claims |= {"metadata": {"name": "one"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    pool = {"metadata": {"name": "n"}, "spec": pool}
    pool |= {"apiVersion": "moorage.dev/v1", "kind": "NodePool"}
    (tmp_path / "pool.json").write_text(json.dumps(pool))
    with serving("-f", "pool.json") as server:
        entry = {"name": "gpu", "resourceClaimTemplateName": "one"}
        pods = [pod(f"p{i}", resourceClaims=[entry]) for i in range(3)]
        server.kubectl("create", "-f", "-", manifest=[claims, *pods])
        server.kubectl("wait", "--for=condition=Ready", "pod/p0", "pod/p1", "--timeout=60s")
        (slice_,) = rows(server.kubectl("get", "resourceslices"))
        assert slice_[:4] == ["n-0-gpu.example.com", "n-0", "gpu.example.com", "n-0"]
        states = [row[1] for row in rows(server.kubectl("get", "resourceclaims"))]
        assert states == ["allocated,reserved", "allocated,reserved", "pending"]
        described = server.kubectl("describe", "resourceclaims")
        assert "Reserved For:" in described
        assert "Device:   gpu-0" in described
        assert "cannot allocate all claims" in server.kubectl("describe", "pod", "p2")
        # A freed device wakes the pod that waits.
        server.kubectl("delete", "pod", "p0")
        server.kubectl("wait", "--for=condition=Ready", "pod/p2", "--timeout=60s")
        server.kubectl("delete", "pods", "--all")
        until(lambda: "No resources" in server.kubectl("get", "resourceclaims"))


def test_explain_shows_fields(server):
    printed = server.kubectl("explain", "deployment.spec.strategy.rollingUpdate")
    assert "maxSurge\t<IntOrString>" in printed
    assert "containerPort\t<integer> -required-" in server.kubectl(
        "explain", "pod.spec.containers.ports"
    )


def test_strict_validation_names_the_field(server):
    manifest = pod("misspelt", nodeNane="x")
    printed = server.kubectl("create", "-f", "-", "--validate=strict", manifest=manifest, code=1)
    assert "unknown field" in printed
    assert "nodeNane" in printed
    printed = server.kubectl("create", "-f", "-", "--validate=warn", manifest=manifest)
    assert "pod/misspelt created" in printed


def test_access(server):
    assert server.kubectl("auth", "can-i", "delete", "pods") == "yes\n"
    server.kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    server.kubectl("create", "rolebinding", "readers", "--role=reader", "--user=jane")
    assert rows(server.kubectl("get", "rolebinding", "readers"))[0][1] == "Role/reader"
    assert "[get list]" in server.kubectl("describe", "role", "reader")
    server.kubectl("create", "serviceaccount", "robot")
    assert server.kubectl("create", "token", "robot").count(".") == 2


def test_ingress_quota_and_autoscaler(server):
    server.kubectl("create", "ingress", "front", "--rule=example.com/=web:80")
    assert "example.com" in server.kubectl("get", "ingress", "front")
    server.kubectl("create", "namespace", "limited")
    server.kubectl("-n", "limited", "create", "quota", "small", "--hard=pods=2")
    assert "pods" in server.kubectl("-n", "limited", "describe", "quota", "small")
    server.kubectl("create", "deployment", "grown", "--image=web:1")
    server.kubectl("autoscale", "deployment", "grown", "--max=3", "--cpu-percent=50")
    assert "cpu: <unknown>/50%" in server.kubectl("get", "hpa", "grown")


def test_kinds_of_equal_name_in_several_groups(server):
    """PodGroups of the scheduler-plugins, of Volcano, and the built-in ones."""

    def definition(group, version):
        served = {"name": version, "served": True, "storage": True}
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        served["schema"] = {"openAPIV3Schema": schema}
        names = {"kind": "PodGroup", "plural": "podgroups"}
        spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [served]}
        made = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        return {**made, "metadata": {"name": f"podgroups.{group}"}, "spec": spec}

    def group_of(api_version, **spec):
        return {
            "apiVersion": api_version,
            "kind": "PodGroup",
            "metadata": {"name": "twins"},
            "spec": spec,
        }

    versions = ["scheduling.x-k8s.io/v1alpha1", "scheduling.volcano.sh/v1beta1"]
    crds = [definition(*each.split("/")) for each in versions]
    server.kubectl("create", "-f", "-", manifest=crds)
    server.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=60s")
    groups = [group_of(each, minMember=3) for each in versions]
    groups.append(
        group_of("scheduling.k8s.io/v1alpha2", schedulingPolicy={"gang": {"minCount": 3}})
    )
    server.kubectl("apply", "-f", "-", manifest=groups)
    for each in versions:
        name = f"podgroups.{each.partition('/')[0]}"
        assert server.kubectl("get", name).splitlines()[0].split() == ["NAME", "AGE"]
        assert server.json("get", name, "twins")["spec"] == {"minMember": 3}
    shown = server.kubectl("get", "podgroups.scheduling.k8s.io")
    assert shown.splitlines()[0].split()[:2] == ["NAME", "POLICY"]
    server.kubectl("delete", "crd", f"podgroups.{versions[0].partition('/')[0]}")
    assert server.json("get", "podgroups.scheduling.k8s.io", "twins")["spec"]
    assert server.json("get", "podgroups.scheduling.volcano.sh", "twins")["spec"]
