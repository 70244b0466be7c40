"""The advice of an explanation: one line with figures per rejection reason."""

import pytest

from moorage import explain


def node(name, *, taints=(), labels=None, cordoned=False, **allocatable):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": list(taints), "unschedulable": cordoned},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", **allocatable}},
    }


def pod(name="p", *, cpu="1", ports=(), **spec):
    container = {
        "name": "c",
        "image": "i",
        "resources": {"requests": {"cpu": cpu}},
        "ports": [{"containerPort": port, "hostPort": port} for port in ports],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
SOON_GONE = {"key": "gone", "effect": "NoExecute"}
SOFT = {"key": "soft", "effect": "PreferNoSchedule"}

IN_ZONE_A = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
                {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
            ]
        }
    }
}
ON_NODE_Q = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["q"]}]}
            ]
        }
    }
}


def spread(key):
    selector = {"matchLabels": {"app": "web"}}
    hard = {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": key, **hard}]}


def near(field, **labels):
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": labels}}
    return {"affinity": {field: {required: [term]}}}


def web(name, node, **spec):
    made = pod(name, nodeName=node, **spec)
    made["metadata"]["labels"] = {"app": "web"}
    return made


IN_A, IN_B = {"labels": {"zone": "a"}}, {"labels": {"zone": "b"}}


@pytest.mark.parametrize(
    ("pending", "others", "advice"),
    [
        pytest.param(
            pod(cpu="6"),
            [node("n")],
            "Insufficient cpu: the pod requests 6; n has 4 free of 4.",
            id="one node that is too small",
        ),
        pytest.param(
            pod(cpu="6"),
            [node("n"), node("m", cpu="5500m")],
            "Insufficient cpu: the pod requests 6; of the 2 nodes with this reason, m has the most "
            "free: 5.5. None of them is large enough when empty; the largest has 5.5.",
            id="nodes that are too small",
        ),
        pytest.param(
            pod(cpu="3"),
            [node("n"), node("m", cpu="1"), pod("other", cpu="2", nodeName="n")],
            "Insufficient cpu: the pod requests 3; of the 2 nodes with this reason, n has the most "
            "free: 2. Large enough if other pods left: n.",
            id="a node that is too full",
        ),
        pytest.param(
            pod(tolerations=[{"key": "gpu", "operator": "Exists"}]),
            [node("n", taints=[GPU, SOON_GONE, SOFT]), node("m", taints=[SOON_GONE])],
            "node(s) had untolerated taint(s): the pod has no toleration for "
            "gone:NoExecute (2 nodes).",
            id="only taints that are not tolerated",
        ),
        pytest.param(
            pod(),
            [node("n", taints=[GPU]), node("m", taints=[SOON_GONE, GPU])],
            "node(s) had untolerated taint(s): the pod has no toleration for "
            "gpu=yes:NoSchedule (2 nodes), gone:NoExecute (1 node).",
            id="several taints, the most frequent first",
        ),
        pytest.param(
            pod(),
            [node("n", cordoned=True)],
            "node(s) were unschedulable: cordoned; `kubectl uncordon` makes them schedulable "
            "again: n.",
            id="cordoned",
        ),
        pytest.param(
            pod(nodeSelector={"zone": "a", "disk": "fast"}),
            [node("n", labels={"zone": "a"}), node("m")],
            "node(s) didn't match Pod's node affinity/selector: the pod requires "
            "zone=a, which 1 of 2 nodes has; and disk=fast, which no node has.",
            id="a node selector",
        ),
        pytest.param(
            pod(affinity=IN_ZONE_A, nodeSelector={"os": "bsd"}),
            [node("n", labels={"zone": "a"}), node("m", labels={"disk": ""}), node("o")],
            "node(s) didn't match Pod's node affinity/selector: the pod requires "
            "os=bsd, which no node has; and zone In [a, b] or disk Exists, which 2 of 3 nodes "
            "have.",
            id="node affinity terms",
        ),
        pytest.param(
            pod(affinity=ON_NODE_Q),
            [node("n")],
            "node(s) didn't satisfy plugin(s) [NodeAffinity]: the pod requires "
            "metadata.name In [q], which no node has.",
            id="a node name that does not exist",
        ),
        pytest.param(
            pod(ports=[80, 443]),
            [node("n"), pod("web", ports=[443], nodeName="n"), pod("x", nodeName="n")],
            "node(s) didn't have free ports for the requested pod ports: the pod wants "
            "80/TCP, 443/TCP, held by default/web on n.",
            id="host ports, and the pods that hold them",
        ),
        pytest.param(
            pod(),
            [node("n", pods="1"), pod("x", nodeName="n")],
            "Too many pods: n has a limit of 1 pod and no room for another.",
            id="the pod limit of the node is reached",
        ),
        pytest.param(
            pod(**spread("rack")),
            [node("n")],
            "node(s) didn't match pod topology spread constraints (missing required label): "
            "the pod is spread over the label rack: no node has it.",
            id="a topology key that no node has",
        ),
        pytest.param(
            web("p", "", **spread("zone")),
            [node("n", **IN_A), node("m", pods="0", **IN_B), web("w", "n")],
            "node(s) didn't match pod topology spread constraints: between values of zone the "
            "number of pods with app=web may differ by 1; there are 0 in b, 1 in a.",
            id="the skew is too large",
        ),
        pytest.param(
            pod(**near("podAffinity", app="db")),
            [node("n", **IN_A), web("w", "n")],
            "node(s) didn't match pod affinity rules: the pod has to share zone with pods with "
            "app=db, and there are none.",
            id="no pod matches the affinity",
        ),
        pytest.param(
            pod(**near("podAntiAffinity", app="web")),
            [node("n", **IN_A), web("w", "n")],
            "node(s) didn't match pod anti-affinity rules: the pod must not share zone with pods "
            "with app=web: default/w on n.",
            id="a pod matches the anti-affinity",
        ),
        pytest.param(
            web("p", ""),
            [node("n", **IN_A), web("w", "n", **near("podAntiAffinity", app="web"))],
            "node(s) didn't satisfy existing pods anti-affinity rules: kept away by default/w "
            "on n.",
            id="the anti-affinity of another pod matches",
        ),
        pytest.param(
            pod(schedulingGates=[{"name": "a"}, {"name": "b"}]),
            [node("n")],
            "The pod is not scheduled until its scheduling gates are removed: a, b.",
            id="gates",
        ),
        pytest.param(
            pod(), [], "There is no node among the objects that were given.", id="no node"
        ),
    ],
)
def test_advice(pending, others, advice):
    found = explain([pending, *others], "p").advice
    assert [line for line in found if not line.startswith("Too many pods: m")] == [advice]


def test_a_node_with_more_is_rejected_for_something_else():
    others = [node("n"), node("m", cpu="1"), node("o", cpu="9", taints=[GPU])]
    first, _ = explain([pod(cpu="5"), *others], "p").advice
    assert first == (
        "Insufficient cpu: the pod requests 5; of the 2 nodes with this reason, n has the most "
        "free: 4. None of them is large enough when empty; the largest has 4."
    )


def test_a_resource_that_no_node_has():
    pending = pod()
    pending["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    assert explain([pending, node("n"), node("m")], "p").advice == [
        "Insufficient example.com/gpu: the pod requests 1; these 2 nodes offer none."
    ]


def test_the_most_frequent_reason_comes_first():
    nodes = [node("a", taints=[GPU]), node("b", cordoned=True), node("c", cordoned=True)]
    advice = explain([pod(), *nodes], "p").advice
    assert [line.partition(":")[0] for line in advice] == [
        "node(s) were unschedulable",
        "node(s) had untolerated taint(s)",
    ]


def test_a_pod_that_fits_gets_no_advice():
    assert explain([pod(), node("n"), node("m", taints=[GPU])], "p").advice == []


USERS_PLUGIN = """
from moorage import plugin as mp

FULL = mp.unschedulable("node(s) were full")


class Limit:
    name = "Limit"

    def pre_filter(self, state, pod):
        return mp.only_nodes(["n"]) if pod.labels.get("only") else mp.SUCCESS

    def filter(self, state, pod, node):
        return mp.SUCCESS if pod.labels.get("only") else FULL

    def explain_rejection(self, rejection):
        if rejection.pod.labels.get("broken"):
            raise RuntimeError("out of words")
        names = [node.name for node in rejection.nodes]
        return f"{rejection.pod.key} on {', '.join(names)}; {len(rejection.all_nodes)} in all."
"""


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param(
            {}, ["node(s) were full: default/p on m, n; 2 in all."], id="a reason of its filter"
        ),
        pytest.param(
            {"only": "yes"},
            ["node(s) didn't satisfy plugin(s) [Limit]: default/p on m; 2 in all."],
            id="nodes that its pre_filter excluded",
        ),
        pytest.param(
            {"broken": "yes"},
            ['node(s) were full: plugin "Limit": explain_rejection: out of words (limit.py:18)'],
            id="an exception is shown, and the explanation goes on",
        ),
    ],
)
def test_a_users_plugin_explains_its_rejections(labels, expected, tmp_path):
    (tmp_path / "limit.py").write_text(USERS_PLUGIN)
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {enabled: [{name: limit.py:Limit}]}}}]\n"
    )
    pending = pod()
    pending["metadata"]["labels"] = labels
    nodes = [node("m"), node("n", cordoned=bool(labels.get("only")))]
    found = explain([pending, *nodes], "p", config=config).advice
    assert [line for line in found if "unschedulable" not in line] == expected
