"""Results of plugins as annotations, in kube-scheduler-simulator's form."""

import itertools
import json
from random import Random

import pytest

from moorage import explain
from moorage.api import config, timestamps
from moorage.cluster.api_server import ApiServer
from moorage.cluster.resources import NODES, PODS, PRIORITY_CLASSES
from moorage.cluster.store import Store
from moorage.core.journal import Journal, Popped
from moorage.serve import server
from moorage.serve.control_plane import ControlPlane
from moorage.serve.result_annotations import MOST_NODES, PREFIX, AnnotatingScheduler

NOON = 1_800_000_000.0


class Served:
    """A cluster with an annotating scheduler."""

    def __init__(self):
        uids = itertools.count(1)
        self.now = NOON
        self.store = Store(
            clock=lambda: timestamps.to_text(self.now), uid=lambda: f"uid-{next(uids)}"
        )
        self.api = ApiServer(self.store, now=lambda: self.now, random=Random(1))
        self.scheduler = AnnotatingScheduler(config.load(None), Journal())
        ticks = itertools.count()
        self.control_plane = ControlPlane(
            self.api, self.scheduler, stopwatch=lambda: next(ticks) * 1e-6
        )

    def node(self, name, cpu="4", **spec):
        allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
        obj = {"metadata": {"name": name}, "spec": spec}
        created = self.api.create(NODES, obj)
        self.api.replace(NODES, {**created, "status": {"allocatable": allocatable}})

    def pod(self, name, cpu="1", **spec):
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
        obj = {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}
        self.api.create(PODS, obj)

    def run(self, seconds=0.0):
        until = self.now + seconds
        while True:
            for _ in range(20):
                self.control_plane.turn()
            if self.now >= until:
                return
            self.now += 1

    def results(self, name):
        found = self.store.get(PODS, "default", name)["metadata"].get("annotations", {})
        results = {key.removeprefix(PREFIX): text for key, text in found.items() if PREFIX in key}
        selected = results.pop("selected-node")
        return {key: json.loads(text) for key, text in results.items()} | {"selected": selected}


@pytest.fixture
def served():
    return Served()


def test_a_pod_that_is_bound(served):
    served.node("a", cpu="4")
    served.node("b", cpu="8")
    served.node("off", unschedulable=True)
    objects = list(served.store.each(NODES))
    served.pod("p")
    pod = {**served.store.get(PODS, "default", "p"), "apiVersion": "v1", "kind": "Pod"}
    expected = explain([*({**o, "kind": "Node", "apiVersion": "v1"} for o in objects), pod], "p")
    served.run()
    found = served.results("p")
    assert found["selected"] == served.store.get(PODS, "default", "p")["spec"]["nodeName"] == "b"
    assert {
        node: {plugin: int(score) for plugin, score in scores.items()}
        for node, scores in found["finalscore-result"].items()
    } == expected.scores
    raw, final = found["score-result"]["b"], found["finalscore-result"]["b"]
    assert raw.keys() == final.keys()
    assert (raw["TaintToleration"], final["TaintToleration"]) == ("0", "300")
    assert raw["NodeResourcesFit"] == final["NodeResourcesFit"] != "0"
    assert found["filter-result"]["b"]["NodeResourcesFit"] == "passed"
    assert found["filter-result"]["off"] == {
        "NodeUnschedulable": expected.rejected["off"].message
    }, "later filters did not run"
    assert found["prefilter-result-status"]["NodeResourcesFit"] == "success"
    assert found["prefilter-result-status"]["NodePorts"] == ""
    assert found["postfilter-result"] == {}


def test_a_pod_that_is_rejected_is_annotated_once(served):
    served.node("a", cpu="1")
    served.pod("big", cpu="2")
    served.run()
    found = served.results("big")
    assert found["filter-result"]["a"]["NodeResourcesFit"] == "Insufficient cpu"
    assert (found["selected"], found["score-result"]) == ("", {})
    version = served.store.get(PODS, "default", "big")["metadata"]["resourceVersion"]
    served.run(seconds=30)
    assert served.store.get(PODS, "default", "big")["metadata"]["resourceVersion"] == version
    attempts = [fact for fact in served.scheduler.journal if isinstance(fact, Popped)]
    assert len(attempts) == 1, "the annotations requeue no pod"


def test_a_search_that_is_narrowed(served):
    served.node("a")
    served.pod("p", affinity=NOWHERE)
    served.run()
    found = served.results("p")
    assert found["prefilter-result"] == {"NodeAffinity": ["x"]}
    assert found["filter-result"] == {}
    assert found["selected"] == ""


NOWHERE = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}
            ]
        }
    }
}


def test_preemption(served):
    served.node("a", cpu="2")
    served.pod("low", cpu="2")
    served.run()
    served.api.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
    served.pod("high", cpu="2", priorityClassName="high")
    served.run()
    found = served.results("high")
    assert found["postfilter-result"] == {"a": {"DefaultPreemption": "preemption victim"}}
    assert found["filter-result"]["a"]["NodeResourcesFit"] == "Insufficient cpu"


def test_a_large_cluster_has_the_best_nodes_only(served):
    for i in range(MOST_NODES + 20):
        served.node(f"n{i}", cpu="16" if i >= 30 else "4")
    served.pod("p")
    served.run()
    found = served.results("p")
    assert len(found["filter-result"]) == MOST_NODES
    assert found["selected"] in found["finalscore-result"]
    assert len({name for name in found["score-result"] if int(name[1:]) >= 30}) == 90


@pytest.mark.parametrize("is_set", [False, True])
def test_only_with_the_flag(is_set):
    options = server.ServeOptions(
        access=None, kubeconfig=None, configuration=config.load(None), annotate_results=is_set
    )
    assert isinstance(server.scheduler(options), AnnotatingScheduler) == is_set
