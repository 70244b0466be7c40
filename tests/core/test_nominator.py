"""Nominations: which source counts, in which order, and when they end."""

import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod, PodSpec, PodStatus
from moorage.core.nominator import Nominator


def make_pod(name="p", *, nominated="", node="", uid=None):
    return Pod(
        metadata=ObjectMeta(name=name, namespace="ns", uid=uid or f"uid-{name}"),
        spec=PodSpec(node_name=node),
        status=PodStatus(nominated_node_name=nominated),
    )


@pytest.mark.parametrize(
    ("memory", "old", "new", "node"),
    [
        pytest.param("n1", "", "", "n1", id="29: a nomination not yet written is kept"),
        pytest.param(None, "n1", "", None, id="29: a value taken away is dropped"),
        pytest.param("n1", "n1", "", None, id="29: even if it was nominated here"),
        pytest.param("n1", "", "n2", "n2", id="a value that appears counts"),
        pytest.param(None, "n1", "n2", "n2", id="a value that changes counts"),
        pytest.param("", "", "", "", id="a nomination of no node is kept too"),
        pytest.param(None, "", "", None, id="nothing said, nothing kept"),
    ],
)
def test_update(memory, old, new, node):
    nominator = Nominator()
    nominator.follow(make_pod(nominated=old))
    if memory is not None:
        nominator.nominate(make_pod(nominated=old), memory)
    nominator.update(make_pod(nominated=old), make_pod(nominated=new))
    assert nominator.node_of("uid-p") == node


@pytest.mark.parametrize(
    ("known", "node"),
    [
        pytest.param(make_pod(), "n1", id="29: still waiting"),
        pytest.param(None, None, id="29: absent from the lister"),
        pytest.param(make_pod(node="n3"), None, id="29: bound meanwhile"),
        pytest.param(make_pod(uid="other"), None, id="recreated under its name"),
    ],
)
def test_only_pending_pods_are_nominated(known, node):
    nominator = Nominator({"ns/p": known} if known else {})
    nominator.nominate(make_pod(), "n1")
    assert nominator.node_of("uid-p") == node
    nominator.follow(make_pod(nominated="n1"))
    assert nominator.node_of("uid-p") == node


def test_a_repeated_nomination_comes_last():
    nominator = Nominator()
    for name in ("p", "q", "p"):
        nominator.nominate(make_pod(name), "n1")
    assert [pod.name for pod in nominator.on("n1")] == ["q", "p"]


def test_a_nomination_overrides_the_status():
    nominator = Nominator()
    nominator.follow(make_pod(nominated="n1"))
    nominator.nominate(make_pod(nominated="n1"), "n2")
    assert list(nominator.by_node) == ["n2"]
    nominator.nominate(make_pod(nominated="n1"), "")
    assert list(nominator.by_node) == []
    assert nominator.node_of("uid-p") == ""


def test_following_an_empty_status_ends_the_nomination():
    nominator = Nominator()
    nominator.nominate(make_pod(), "n1")
    nominator.follow(make_pod())
    assert nominator.node_of("uid-p") is None


def test_pods_of_a_node_come_in_the_order_of_their_nomination():
    nominator = Nominator()
    for name in "abc":
        nominator.nominate(make_pod(name), "n1")
    nominator.update(make_pod("a"), make_pod("a"))
    assert [nomination.name for nomination in nominator.on("n1")] == ["b", "c", "a"]
    nominator.delete(make_pod("c"))
    nominator.delete(make_pod("c"))
    assert [nomination.name for nomination in nominator.on("n1")] == ["b", "a"]
    assert nominator.on("n2") == []
