"""Reports to look at: a crowded afternoon in which something of everything happens."""

import pytest

from moorage import explain
from moorage.api.kinds import KINDS
from moorage.reporting import page
from moorage.scenarios import reading
from moorage.scenarios.play import Play


def arrivals(name, cpu="1", memory="2Gi", **more):
    requests = {"cpu": cpu, "memory": memory}
    spec = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
    spec |= more.pop("pod", {})
    return {"name": name, "template": {"spec": spec}, **more}


SCENARIO = {
    "apiVersion": "moorage.dev/v1",
    "kind": "Scenario",
    "metadata": {"name": "a crowded afternoon </script><b>&"},
    "spec": {
        "duration": "6h",
        "seed": 3,
        "arrivals": [
            arrivals("batch", "2", rate={"perHour": 40}, lifetime={"exponential": "50m"}),
            arrivals("urgent", "3", at=["3h"], count=12, pod={"priority": 10}),
            arrivals("never", at=["1h"], count=2, pod={"nodeSelector": {"disk": "nvme"}}),
            arrivals("gated", at=["1h"], pod={"schedulingGates": [{"name": "x"}]}),
        ],
        "events": [
            {"at": "2h", "drain": {"count": 1, "for": "30m"}},
            {"at": "4h", "fail": {"count": 1, "for": "20m"}},
        ],
    },
}
POOL = {
    "apiVersion": "moorage.dev/v1",
    "kind": "NodePool",
    "metadata": {"name": "general-purpose"},
    "spec": {"count": 10, "template": {"status": {"allocatable": {"cpu": "8", "memory": "32Gi"}}}},
}


@pytest.fixture(scope="session")
def scenario():
    """The scenario, and the objects that are there at its start."""
    return SCENARIO, [POOL]


@pytest.fixture(scope="session")
def crowded(scenario):
    """The simulation, at its end."""
    return Play(reading.plan(*scenario)).run()


@pytest.fixture(scope="session")
def report(crowded):
    """Its report."""
    objects = [obj for kind in KINDS.values() for obj in crowded.cluster.active(kind.struct)]
    result = crowded.result
    chosen = [result.pending[0].pods[0], next(k for k, node in crowded.placements.items() if node)]
    told = [explain(objects, pod) for pod in chosen]
    title = SCENARIO["metadata"]["name"]
    return page.render(result, title=title, seed=3, explanations=told)
