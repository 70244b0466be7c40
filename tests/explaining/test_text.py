"""`str(explanation)`: the text for people, in at most 100 columns."""

import pytest

from moorage import explain

WIDTH = 100


def node(name, cpu="4", **spec):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}},
    }


def pod(name="p", cpu="1", **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


def text(*objects, **more):
    return str(explain(objects, "p", **more))


def sentence(explanation):
    return " ".join(explanation.split("\n\n")[0].split())


def test_the_best_node():
    assert text(pod(), node("large", "8"), node("small", "2"), node("mini", "500m")) == (
        "default/p would run on large: with 463 points it is the best of the 2 that fit, "
        "28 points ahead of\n"
        "small, most of all in NodeResourcesFit.\n"
        "\n"
        "2 nodes fit:\n"
        "           total  NodeResourcesFit  NodeResourcesBalancedAllocation\n"
        "  * large    463                92                               71\n"
        "    small    435                73                               62\n"
        "  the same for all of them: TaintToleration 300, ImageLocality 0\n"
        "\n"
        "1 node is rejected:\n"
        "  1  Insufficient cpu (NodeResourcesFit)\n"
        "      mini"
    )


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        pytest.param(
            [pod(), node("n")], "default/p would run on n: it is the only node.", id="one node"
        ),
        pytest.param(
            [pod(cpu="3"), node("n"), node("m", "1")],
            "default/p would run on n: it is the only one of 2 nodes that fits.",
            id="one feasible node",
        ),
        pytest.param(
            [pod(cpu="9"), node("n")],
            "default/p stays pending: 0/1 nodes are available: 1 Insufficient cpu.",
            id="no feasible node",
        ),
        pytest.param(
            [pod(schedulingGates=[{"name": "g"}]), node("n")],
            "default/p is gated by SchedulingGates: waiting for scheduling gates: [g].",
            id="gated",
        ),
        pytest.param(
            [pod(schedulerName="mine"), node("n")],
            'default/p stays pending: no profile for scheduler "mine"',
            id="another scheduler's pod",
        ),
        pytest.param(
            [pod(nodeName="n"), node("n"), node("m", "500m")],
            "default/p runs on n. Scheduled again, it would stay there: "
            "it is the only one of 2 nodes that fits.",
            id="runs on the best node",
        ),
        pytest.param(
            [pod(nodeName="m"), node("n"), node("m", unschedulable=True)],
            "default/p runs on m. Scheduled again, it would go to n: it is the only one of 2 nodes "
            "that fits; m is rejected (node(s) were unschedulable).",
            id="runs on a node that is not the best",
        ),
        pytest.param(
            [pod(nodeName="gone"), node("n")],
            "default/p cannot run: its spec.nodeName names a node that does not exist, gone. "
            "Scheduled again, it would go to n: it is the only node.",
            id="assigned to a missing node",
        ),
        pytest.param(
            [pod(nodeName="n", cpu="9"), node("n")],
            "default/p runs on n. Scheduled again, it would stay pending: "
            "0/1 nodes are available: 1 Insufficient cpu.",
            id="runs on a node that is full",
        ),
    ],
)
def test_the_first_sentence(objects, said):
    assert sentence(text(*objects)) == said


def test_the_seed_breaks_a_tie():
    explanation = explain([pod(), node("a"), node("b"), node("c", "2")], "p", seed=3)
    other = {"a": "b", "b": "a"}[explanation.picked]
    assert sentence(str(explanation)) == (
        f"default/p would run on {explanation.picked}: 2 of the 3 that fit share the best, "
        f"{explanation.totals['a']} points, and the seed selected it over {other}."
    )


def test_a_plugin_that_raises_is_named(tmp_path):
    (tmp_path / "raising.py").write_text(
        "class Raising:\n"
        "    name = 'Raising'\n"
        "    def score(self, state, pod, node):\n"
        "        raise ValueError('no idea')\n"
    )
    enabled = {"multiPoint": {"enabled": [{"name": f"{tmp_path}/raising.py:Raising"}]}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": enabled}],
    }
    explanation = sentence(text(pod(), node("n"), node("m"), config=config))
    assert explanation.startswith("default/p cannot be scheduled, because plugin Raising failed: ")
    assert explanation.endswith("no idea (raising.py:4)")


def test_no_line_exceeds_the_width(capsys):
    nodes = [node(f"node-with-a-rather-long-name-{i:04}", str(1 + i % 7)) for i in range(300)]
    nodes += [node(f"cordoned-{i}", unschedulable=True) for i in range(300)]
    for pending in (pod(), pod(cpu="50")):
        explanation = text(pending, *nodes)
        assert max(map(len, explanation.splitlines())) <= WIDTH
        assert "more" in explanation
