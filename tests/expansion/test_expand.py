"""Workloads, pools and dumps -> the pods and nodes that controllers would make of them."""

import re

import pytest

from moorage import Simulation, explain
from moorage.api import manifests
from moorage.api.pod import Pod
from moorage.errors import InputError, ManifestError
from moorage.expansion import expand, templates

SPEC = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC}
SELECTOR = {"matchLabels": {"app": "web"}}
API = {"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}
API |= {
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "NodePool": "moorage.dev/v1",
}


def make(kind, name="web", meta=None, **spec):
    metadata = {"name": name, **(meta or {})}
    return {"apiVersion": API.get(kind, "v1"), "kind": kind, "metadata": metadata, "spec": spec}


def pool(count=3, name="pool", spec=None, labels=None, **more):
    status = {"allocatable": {"cpu": "8", "memory": "32Gi"}}
    template = {"metadata": {"labels": labels or {}}, "spec": spec or {}, "status": status}
    return make("NodePool", name, count=count, template=template, **more)


def pod(name, owner=None, labels=None, phase="Running", **meta):
    meta = {"name": name, "namespace": "default", "labels": labels or {"app": "web"}, **meta}
    if owner:
        kind, owner_name = owner
        reference = {"apiVersion": API[kind], "kind": kind, "name": owner_name}
        reference["uid"] = f"uid-of-{owner_name}"
        meta["ownerReferences"] = [{**reference, "controller": True}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": SPEC,
        "status": {"phase": phase},
    }


def expanded(*objects):
    return expand(manifests.read(objects).everything)


def pods(*objects):
    return [obj for obj in expanded(*objects) if isinstance(obj, Pod)]


def of_kind(kind, objects):
    return [obj for obj in objects if type(obj).__name__ == kind]


LETTERS = f"[{templates.LETTERS}]"


@pytest.mark.parametrize(
    ("workload", "count", "pattern", "owner"),
    [
        pytest.param(
            make("Deployment", replicas=3, selector=SELECTOR, template=TEMPLATE),
            3,
            f"web-{LETTERS}{{10}}-{LETTERS}{{5}}",
            "ReplicaSet",
            id="a deployment's replica set",
        ),
        pytest.param(
            make("Deployment", selector=SELECTOR, template=TEMPLATE),
            1,
            "web-.*",
            "ReplicaSet",
            id="one replica unless it says otherwise",
        ),
        pytest.param(
            make("ReplicaSet", replicas=2, selector=SELECTOR, template=TEMPLATE),
            2,
            f"web-{LETTERS}{{5}}",
            "ReplicaSet",
            id="a replica set",
        ),
        pytest.param(
            make("ReplicationController", replicas=2, selector={"app": "web"}, template=TEMPLATE),
            2,
            f"web-{LETTERS}{{5}}",
            "ReplicationController",
            id="a replication controller",
        ),
        pytest.param(
            make("StatefulSet", replicas=2, selector=SELECTOR, template=TEMPLATE),
            2,
            "web-[01]",
            "StatefulSet",
            id="a stateful set",
        ),
        pytest.param(
            make("Job", parallelism=2, completions=5, template=TEMPLATE),
            2,
            f"web-{LETTERS}{{5}}",
            "Job",
            id="as many pods of a job as run at a time",
        ),
        pytest.param(
            make("Job", parallelism=5, completions=2, template=TEMPLATE),
            2,
            f"web-{LETTERS}{{5}}",
            "Job",
            id="no more pods of a job than have to succeed",
        ),
        pytest.param(
            make("Job", parallelism=2, completions=4, completionMode="Indexed", template=TEMPLATE),
            2,
            f"web-[01]-{LETTERS}{{5}}",
            "Job",
            id="an indexed job",
        ),
        pytest.param(
            make("CronJob", schedule="0 3 * * *", jobTemplate={"spec": {"template": TEMPLATE}}),
            1,
            f"web-[0-9]+-{LETTERS}{{5}}",
            "Job",
            id="one run of a cron job",
        ),
        pytest.param(make("Job", suspend=True, template=TEMPLATE), 0, "", "", id="a suspended job"),
        pytest.param(
            make("Deployment", replicas=0, selector=SELECTOR, template=TEMPLATE),
            0,
            "",
            "",
            id="none",
        ),
        pytest.param(make("ReplicaSet", replicas=3), 0, "", "", id="no template, no pods"),
    ],
)
def test_pods_of_a_workload(workload, count, pattern, owner):
    found = pods(workload)
    assert len(found) == len({each.name for each in found}) == count
    for each in found:
        assert re.fullmatch(pattern, each.name), each.name
        assert each.controller.kind == owner
        assert each.labels.items() >= {"app": "web"}.items()
    assert [each.name for each in pods(workload)] == [each.name for each in found]


def test_a_deployment_s_pods_carry_its_replica_set_s_hash():
    found = expanded(make("Deployment", selector=SELECTOR, template=TEMPLATE))
    [made], [one] = of_kind("ReplicaSet", found), of_kind("Pod", found)
    letters = one.labels["pod-template-hash"]
    assert made.name == f"web-{letters}"
    assert made.spec.selector.match_labels == {"app": "web", "pod-template-hash": letters}
    assert (one.controller.name, made.controller.kind) == (made.name, "Deployment")


def test_a_stateful_set_s_claims():
    claims = [
        {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    ]
    found = expanded(
        make("StatefulSet", "db", replicas=2, template=TEMPLATE, volumeClaimTemplates=claims),
        make("PersistentVolumeClaim", "data-db-1", {"namespace": "default"}),
    )
    assert sorted(each.name for each in of_kind("PersistentVolumeClaim", found)) == [
        "data-db-0",
        "data-db-1",
    ]
    volumes = [
        each.spec.volumes[0].persistent_volume_claim.claim_name for each in of_kind("Pod", found)
    ]
    assert volumes == ["data-db-0", "data-db-1"]


@pytest.mark.parametrize(
    ("objects", "more"),
    [
        pytest.param(
            [
                make("ReplicaSet", replicas=3, selector=SELECTOR, template=TEMPLATE),
                pod("web-aaaaa", ("ReplicaSet", "web")),
                pod("web-bbbbb", ("ReplicaSet", "web")),
            ],
            1,
            id="two of three are there",
        ),
        pytest.param(
            [
                make("Deployment", replicas=2, selector=SELECTOR, template=TEMPLATE),
                make(
                    "ReplicaSet",
                    "web-5d9f8c",
                    pod("x", ("Deployment", "web"))["metadata"]
                    | {"name": "web-5d9f8c", "labels": {"app": "web"}},
                    replicas=2,
                    selector=SELECTOR,
                    template=TEMPLATE,
                ),
                pod("web-5d9f8c-aaaaa", ("ReplicaSet", "web-5d9f8c")),
                pod("web-5d9f8c-bbbbb", ("ReplicaSet", "web-5d9f8c")),
            ],
            0,
            id="a deployment with its replica set and pods",
        ),
        pytest.param(
            [
                make("Deployment", replicas=3, selector=SELECTOR, template=TEMPLATE),
                pod("web-5d9f8c-aaaaa", ("ReplicaSet", "web-5d9f8c")),
                pod("web-5d9f8c-bbbbb", ("ReplicaSet", "web-5d9f8c")),
            ],
            1,
            id="a deployment whose replica set was left out",
        ),
        pytest.param(
            [make("ReplicaSet", replicas=2, selector=SELECTOR, template=TEMPLATE), pod("web-0")],
            1,
            id="an orphan that matches is adopted",
        ),
        pytest.param(
            [
                make("ReplicaSet", replicas=1, selector=SELECTOR, template=TEMPLATE),
                pod("web-aaaaa", ("ReplicaSet", "web"), phase="Failed"),
            ],
            1,
            id="one that has failed does not count",
        ),
        pytest.param(
            [
                make("StatefulSet", replicas=2, template=TEMPLATE),
                pod("web-1", ("StatefulSet", "web")),
            ],
            1,
            id="one ordinal of two",
        ),
        pytest.param(
            [
                make("Job", parallelism=3, completions=3, template=TEMPLATE),
                pod("web-a", ("Job", "web"), phase="Succeeded"),
                pod("web-b", ("Job", "web")),
            ],
            1,
            id="a job with one done and one running",
        ),
        pytest.param(
            [make("DaemonSet", template=TEMPLATE), pool(2), pod("web-a", ("DaemonSet", "web"))],
            2,
            id="a daemon on no node of ours",
        ),
        pytest.param(
            [make("Job", template=TEMPLATE), pod("other", ("ReplicaSet", "x"))], 1, id="others'"
        ),
    ],
)
def test_what_is_there_is_not_made_twice(objects, more):
    before = sum(obj["kind"] == "Pod" for obj in objects)
    first = expanded(*objects)
    assert len(of_kind("Pod", first)) == before + more
    again = expand(first)
    assert len(of_kind("Pod", again)) == before + more


TAINTED = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}


def daemon(**spec):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC | spec}
    return make("DaemonSet", template=template)


@pytest.mark.parametrize(
    ("workload", "on"),
    [
        pytest.param(daemon(), {"plain-0", "plain-1", "ssd-0", "cordoned-0"}, id="all untainted"),
        pytest.param(daemon(nodeSelector={"disk": "ssd"}), {"ssd-0"}, id="by node selector"),
        pytest.param(
            daemon(tolerations=[{"operator": "Exists"}]),
            {"plain-0", "plain-1", "ssd-0", "cordoned-0", "gpu-0"},
            id="tolerates everything",
        ),
        pytest.param(
            daemon(
                affinity={
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
                            ]
                        }
                    }
                }
            ),
            {"ssd-0"},
            id="by affinity",
        ),
    ],
)
def test_daemons_go_to_the_nodes_that_will_have_them(workload, on):
    cordoned = {"unschedulable": True}
    cordoned["taints"] = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    nodes = [
        pool(2, "plain"),
        pool(1, "ssd", labels={"disk": "ssd"}),
        pool(1, "gpu", TAINTED),
        pool(1, "cordoned", cordoned),
    ]
    sim = Simulation([*nodes, workload])
    sim.run()
    assert set(sim.placements.values()) == on
    assert len(sim.placements) == len(on)


def test_a_pool_s_nodes():
    nodes = of_kind("Node", expanded(pool(4, zones=["a", "b"], labels={"disk": "ssd"})))
    assert [node.name for node in nodes] == ["pool-0", "pool-1", "pool-2", "pool-3"]
    assert nodes[3].labels == {
        "kubernetes.io/hostname": "pool-3",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
        "moorage.dev/pool": "pool",
        "disk": "ssd",
        "topology.kubernetes.io/zone": "b",
    }
    assert nodes[0].status.allocatable == {"cpu": "8", "memory": "32Gi", "pods": "110"}


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        pytest.param(
            make("NodePool", template={}), "NodePool web, spec.count: is missing", id="no count"
        ),
        pytest.param(
            make("NodePool", count=-1, template={}),
            "NodePool web, spec.count: must be a whole number >= 0, is -1",
            id="a negative count",
        ),
        pytest.param(
            make("NodePool", count=1, template={}, size=3),
            "NodePool web, spec.size: is not a known field",
            id="a misspelt field",
        ),
        pytest.param(
            make("NodePool", count=1, template={"status": {"capacity": {"cpu": "many"}}}),
            'NodePool web, spec.template.status.capacity.cpu: "many" is not a quantity',
            id="not a quantity",
        ),
        pytest.param(
            make("Deployment", replicas=1),
            "Deployment default/web, spec.template: Required value",
            id="bare",
        ),
        pytest.param(
            make("DaemonSet"), "DaemonSet default/web, spec.template: Required value", id="daemon"
        ),
        pytest.param(make("Job"), "Job default/web, spec.template: Required value", id="job"),
        pytest.param(
            make("CronJob"), "CronJob default/web, spec.jobTemplate: Required value", id="cron"
        ),
        pytest.param(
            make("Job", template={}, completionMode="Indexed"),
            ("Job default/web, spec.completions: Required value: when completion mode is Indexed"),
            id="an index of how many",
        ),
        pytest.param(
            make("CronJob", jobTemplate={}),
            "CronJob default/web, spec.jobTemplate.spec.template: Required value",
            id="a cron job's job",
        ),
        pytest.param(
            make("Deployment", replicas="three"),
            'Deployment default/web, spec.replicas: must be a whole number, is "three"',
            id="replicas that are no number",
        ),
        pytest.param(
            make(
                "Job",
                template={"spec": {"containers": [{"resources": {"requests": {"cpu": "x"}}}]}},
            ),
            "spec.template.spec.containers[0].resources.requests.cpu",
            id="a quantity in a template",
        ),
    ],
)
def test_complaints_name_the_field(document, complaint):
    with pytest.raises(ManifestError) as raised:
        expanded(document)
    assert complaint in str(raised.value)


def test_an_evicted_pod_of_a_workload_is_made_again():
    low = make("Deployment", "low", replicas=2, selector=SELECTOR, template=TEMPLATE)
    high = pod("high", phase="") | {"spec": SPEC | {"priority": 10}}
    high["metadata"]["labels"] = {}
    small = make("NodePool", "n", count=1, template={"status": {"allocatable": {"cpu": "2"}}})
    sim = Simulation([small, low])
    sim.run()
    assert None not in sim.placements.values()
    sim.create([high])
    sim.run()
    assert sim.placements["default/high"] == "n-0"
    waiting = [key for key, node in sim.placements.items() if node is None]
    assert len(sim.placements) == 3
    assert len(waiting) == 1
    assert waiting[0].startswith("default/low-")


def test_scaling_up_and_down():
    workload = make("Deployment", replicas=2, selector=SELECTOR, template=TEMPLATE)
    sim = Simulation([pool(3), workload])
    for count in (5, 1, 0, 3):
        sim.scale("Deployment", "default", "web", count)
        sim.run()
        assert len(sim.placements) == count
    for count in (-1, 10**8):
        with pytest.raises(
            InputError, match=f"Deployment default/web, .* from 0 to .*, is {count}"
        ):
            sim.scale("Deployment", "default", "web", count)


def test_a_job_runs_pod_after_pod():
    template = TEMPLATE | {"metadata": {"annotations": {"moorage.dev/run-seconds": "10"}}}
    sim = Simulation([pool(1), make("Job", parallelism=2, completions=5, template=template)])
    sim.run(until=100)
    phases = [each.status.phase for each in sim.cluster.all(Pod)]
    assert phases == ["Succeeded"] * 5


def test_a_daemon_follows_a_new_node():
    sim = Simulation([pool(1), daemon()])
    sim.run()
    sim.create([pool(2)])
    sim.run()
    assert sorted(sim.placements.values()) == ["pool-0", "pool-1"]


def test_explain_takes_workloads_too():
    objects = [pool(2), make("StatefulSet", replicas=1, template=TEMPLATE)]
    assert explain(objects, "web-0").picked in ("pool-0", "pool-1")


def test_suffixes_do_not_meet():
    assert len({templates.suffix("ReplicaSet/default/web", i) for i in range(100_000)}) == 100_000


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        pytest.param("ReplicationController", {"selector": {"app": "a"}, "template": TEMPLATE},
                     id="another label"),
        pytest.param("ReplicationController", {"selector": {"app": "a"}, "template": {}},
                     id="an empty template"),
        pytest.param("Deployment", {"selector": SELECTOR, "template": {}},
                     id="an empty template of a Deployment"),
    ],
)  # fmt: skip
def test_a_workload_that_selects_no_pod_of_its_own_is_refused(kind, spec):
    """It would create pods without end."""
    problem = r"spec\.template\.metadata\.labels: `selector` does not match template `labels`"
    with pytest.raises(ManifestError, match=f"{kind} default/web, {problem}"):
        Simulation([pool(1), make(kind, replicas=1, **spec)])
