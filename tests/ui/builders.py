"""Clusters to look at."""

from moorage import Simulation
from moorage.planning import recording

HOSTILE = "<img src=x onerror=alert(1)>"
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def make_node(name, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: "abc"[len(name) % 3], "disk": "ssd"}},
        "spec": spec,
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    }


def make_pod(name, node="", cpu="1", **spec):
    requests = {"cpu": cpu, "memory": "1Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": name, "annotations": {"text": HOSTILE}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
        }
        | spec,
    }


def cluster(count):
    """Nodes of which one is cordoned, one tainted, one not ready; running and pending pods."""
    nodes = [make_node(f"node-{i}") for i in range(count)]
    nodes[1]["spec"] = {"unschedulable": True}
    taint = {"key": "team", "value": HOSTILE, "effect": "NoSchedule"}
    nodes[2]["spec"] = {"taints": [taint]}
    nodes[3]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    running = [make_pod(f"run-{i}", f"node-{i % count}", "500m") for i in range(2 * count)]
    big = [make_pod(f"big-{i}", cpu="64") for i in range(5)]
    nowhere = make_pod("nowhere", nodeSelector={"disk": "nvme"})
    fits = make_pod("fits", nodeSelector={"disk": "ssd"}, priority=7)
    return [*nodes, *running, *big, nowhere, fits]


def hostile_cluster():
    """Markup in every text that a user can choose; the API refuses it, a file may have it."""
    node = make_node(HOSTILE, taints=[{"key": HOSTILE, "value": HOSTILE, "effect": "NoExecute"}])
    node["metadata"]["labels"] |= {HOSTILE: HOSTILE, ZONE: HOSTILE}
    pods = [
        make_pod(HOSTILE, HOSTILE),
        make_pod(f"{HOSTILE}/{{1}}", nodeSelector={HOSTILE: "x"}),
        make_pod("other", schedulerName=HOSTILE),
        make_pod("gated", schedulingGates=[{"name": HOSTILE}]),
    ]
    for pod in pods:
        pod["metadata"]["labels"] = {HOSTILE: HOSTILE}
    pods[2]["metadata"]["namespace"] = HOSTILE
    half = make_node("node-1")
    half["status"]["allocatable"] = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return [node, half, *pods]


def record(path):
    """Record a run with a rejection, a preemption and a lost node; the pods' nodes at each time."""
    lows = [make_pod(f"low-{i}", cpu="6", nodeSelector={HOST: f"node-{i}"}) for i in range(3)]
    nodes = [make_node(f"node-{i}") for i in range(3)]
    for node in nodes:
        node["metadata"]["labels"][HOST] = node["metadata"]["name"]
    simulation = Simulation(nodes, trace=True)
    simulation.create(lows)
    high = make_pod("high", cpu="6", priority=100, nodeSelector={HOST: "node-0"})
    states = {}
    simulation.at(20.0, lambda: simulation.create([high]))
    simulation.at(30.0, lambda: simulation.delete("Node", "", "node-2"))
    for at in (0.0, 10.0, 20.0, 25.0, 30.0, 55.0):
        simulation.run(until=at)
        states[at] = simulation.placements
    recording.write(path, simulation)
    return states
