"""Which nodes are left out: names, patterns and label selectors."""

import pytest
from tests.planning.conftest import node

from moorage.api import manifests
from moorage.errors import InputError
from moorage.planning.excluded_nodes import without_nodes

POOL = {
    "apiVersion": "moorage.dev/v1",
    "kind": "NodePool",
    "metadata": {"name": "spot"},
    "spec": {"count": 3, "template": {"status": {"allocatable": {"cpu": "2"}}}},
}


def left(*excluded):
    objects = manifests.read(
        [node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), POOL]
    )
    return " ".join(obj.name for obj in without_nodes(objects.everything, excluded))


@pytest.mark.parametrize(
    ("excluded", "expected"),
    [
        pytest.param(["a1"], "a2 b1 spot-0 spot-1 spot-2", id="a name"),
        pytest.param(["a1, b1"], "a2 spot-0 spot-1 spot-2", id="names"),
        pytest.param(["a*,spot-[01]"], "b1 spot-2", id="patterns"),
        pytest.param(["moorage.dev/pool=spot"], "a1 a2 b1", id="a selector"),
        pytest.param(
            ["topology.kubernetes.io/zone in (a,b)"], "spot-0 spot-1 spot-2", id="a set of values"
        ),
        pytest.param(["!moorage.dev/pool"], "spot-0 spot-1 spot-2", id="nodes without a label"),
        pytest.param(["a*", "moorage.dev/pool=spot"], "b1", id="several times"),
    ],
)
def test_left(excluded, expected):
    assert left(*excluded) == expected


@pytest.mark.parametrize(
    ("excluded", "message"),
    [
        pytest.param("a1,c", 'there is no node "c"', id="unknown name"),
        pytest.param("c-*", 'there is no node "c-\\*"', id="a pattern that matches none"),
        pytest.param("zone=c", 'selector "zone=c" matches no node', id="a selector likewise"),
        pytest.param("zone in (", 'selector "zone in \\(": ', id="not a selector"),
        pytest.param("", 'there is no node ""', id="empty"),
    ],
)
def test_refused(excluded, message):
    with pytest.raises(InputError, match=f"^--exclude-nodes: {message}"):
        left(excluded)
