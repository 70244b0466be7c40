"""The answers of the API equal what the node table and `explain` say."""

import pytest
from tests.ui.builders import HOSTILE, ZONE, cluster, make_pod

from moorage.api import manifests
from moorage.errors import InputError
from moorage.explaining import grouping
from moorage.explaining.dry_run import DryRun, explain
from moorage.ui import documents, queries, what_if
from moorage.ui.snapshot import ClusterSnapshot, natural


@pytest.fixture(scope="module")
def snapshot():
    return ClusterSnapshot(cluster(20))


def test_totals(snapshot):
    found = documents.cluster(snapshot)
    assert (found["nodes"], found["pods"], found["pending"]) == (20, 40, 7)
    assert found["states"] == {"cordoned": 1, "tainted": 1, "notReady": 1}
    cpu = found["resources"][0]
    assert (cpu["name"], cpu["requestedText"], cpu["allocatableText"]) == ("cpu", "20", "160")
    assert found["labels"] == {"disk": 1, ZONE: 2}
    assert found["taints"] == {f"team={HOSTILE}:NoSchedule": 1}


@pytest.mark.parametrize(("resource", "requested"), [("cpu", 1000), ("pods", 2), ("gpu", 0)])
def test_columns_of_nodes(snapshot, resource, requested):
    found = documents.nodes(snapshot, resource, ZONE)
    assert found["names"] == [f"node-{i}" for i in range(20)]
    assert found["states"][:5] == [0, 1, 2, 4, 0]
    assert set(found["requested"]) == {requested}
    groups = [found["group"]["values"][code] for code in found["group"]["codes"]]
    assert groups == ["a"] * 10 + ["b"] * 10


def test_a_node(snapshot):
    found = what_if.node(snapshot, "node-2")
    assert [each["pod"] for each in found["pods"]] == ["default/run-2", "default/run-22"]
    assert found["pods"][0]["share"] == 0.0625
    assert found["resources"][0]["freeText"] == "7"
    with pytest.raises(InputError, match="there is no node 'node-99'"):
        what_if.node(snapshot, "node-99")


@pytest.mark.parametrize(
    ("query", "positions"),
    [
        ("", list(range(20))),
        ("node-1", [1, *range(10, 20)]),
        ("node-1 is:cordoned", [1]),
        ("label:disk=ssd,disk!=hdd is:notready", [3]),
        ("taint:team", [2]),
        ("taint:team=other", []),
        ("taint:team:NoSchedule", [2]),
        ("taint:team:NoExecute", []),
        ("pod:run-1", [1, *range(10, 20)]),
        ("pod:run-1 node-12", [12]),
        ("pod:run-2 is:cordoned pod:1", [1]),
        ("pod:", list(range(20))),
        ("pod:big", []),
    ],
)
def test_search(snapshot, query, positions):
    assert documents.matching(snapshot, query)["positions"] == positions


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 47),
        ("run-1", 11),
        ("default/run-1", 11),
        ("pod:run-1", 11),
        ("pod:run-1 is:cordoned", 1),
        ("pod:1 pod:run-2 node-1", 1),
        ("pod:big", 5),
        ("pod:big is:cordoned", 0),
    ],
)
def test_search_for_pods(snapshot, query, count):
    found = documents.pods(snapshot, query)
    assert (found["count"], len(found["pods"])) == (count, count)


@pytest.mark.parametrize("query", ["is:happy", "label:a=b=c", "x" * 1001])
def test_refused_search(query):
    with pytest.raises(InputError):
        queries.parse(query)


def test_pending_pods_by_reason_as_explain_groups_them(snapshot):
    run = DryRun(cluster(20))
    expected = grouping.by_reason(run, [pod for pod in run.pods if not pod.node_name])
    found = documents.pending(snapshot)
    assert [(each["reason"], each["pods"]) for each in found["groups"]] == [
        (each.reason, each.pods) for each in expected
    ]
    assert found["notExplained"]["count"] == 0


def test_pods_with_different_claims_are_explained_one_by_one():
    objects = cluster(5) + [
        make_pod(
            f"db-{i}", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": f"c{i}"}}]
        )
        for i in range(2)
    ]
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    objects.append({**claim, "metadata": {"name": "c0"}, "spec": {"volumeName": "gone"}})
    reasons = {
        key: group["reason"]
        for group in documents.pending(ClusterSnapshot(objects))["groups"]
        for key in group["pods"]
    }
    assert reasons["default/db-0"] != reasons["default/db-1"]


@pytest.mark.parametrize("name", ["big-0", "nowhere", "fits"])
def test_a_pod_as_explain_has_it(snapshot, name):
    found = documents.pod(snapshot, f"default/{name}")
    expected = explain(cluster(20), name)
    assert found["message"] == expected.message
    assert found["advice"] == expected.advice
    assert found["feasible"] == len(expected.feasible)
    assert [(each["reason"], each["count"]) for each in found["rejections"]] == [
        (group.reason, len(group.nodes)) for group in expected.rejection_groups
    ]
    totals = {each["node"]: each["total"] for each in found["scores"]["nodes"]}
    assert totals == {node: expected.totals[node] for node in totals}
    assert len(totals) == min(10, len(expected.feasible))
    assert found["funnel"] == [step._asdict() for step in expected.funnel]


def test_a_node_compared_with_the_selected_one(snapshot):
    expected = explain(cluster(20), "fits")
    other = next(name for name in expected.feasible if name != expected.picked)
    found = documents.pod(snapshot, "default/fits", other)["compared"]
    assert (found["selected"], found["total"]) == (
        expected.totals[expected.picked],
        expected.totals[other],
    )
    assert {row["plugin"]: row["node"] for row in found["scores"]} == expected.scores[other]
    rejected = documents.pod(snapshot, "default/fits", "node-1")["compared"]
    assert (rejected["reason"], rejected["plugin"]) == (
        "node(s) were unschedulable",
        "NodeUnschedulable",
    )
    with pytest.raises(InputError, match="there is no node 'x'"):
        documents.pod(snapshot, "default/fits", "x")


def test_the_funnel_ends_with_the_feasible_nodes():
    explained = explain(cluster(20), "fits")
    assert [tuple(step) for step in explained.funnel] == [
        ("NodeUnschedulable", 1, 19),
        ("TaintToleration", 1, 18),
    ]
    assert len(explained.feasible) == 18


def test_objects_of_an_api_server_are_complete(snapshot):
    replicas = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "uid": "w"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"spec": {"containers": [{"name": "c"}]}},
        },
    }
    objects = [*snapshot.run.objects, *manifests.read([replicas]).everything]
    found = ClusterSnapshot.of_api_server(objects, title="x", version=7)
    expected = documents.cluster(snapshot) | {"title": "x", "version": 7}
    assert documents.cluster(found) == expected  # The pods of a ReplicaSet are its controller's.
    assert documents.pending(found) == documents.pending(snapshot) | {"version": 7}
    assert documents.pod(found, "default/run-1")["headline"]
    assert found.try_out((("remove", "node-5"),)).pending_before == 6


def test_numbers_in_names_are_compared_as_numbers():
    assert sorted(["n-10", "n-9", "n"], key=natural) == ["n", "n-9", "n-10"]
