"""Prices of nodes, from a file and from labels, and what a cluster costs."""

from decimal import Decimal

import pytest
from tests.planning.conftest import node

from moorage.api import manifests
from moorage.errors import InputError
from moorage.planning import prices
from moorage.planning.prices import ClusterCost, PriceList

POOL, TYPE = "cloud.google.com/gke-nodepool", "node.kubernetes.io/instance-type"


def nodes(*given):
    return manifests.read(given).objects


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        pytest.param({"n": 1, "spot": 2, "m5": 3}, "1", id="the node first"),
        pytest.param({"spot": 2, "m5": 3}, "2", id="then its pool"),
        pytest.param({"m5": "0.096"}, "0.096", id="then its instance type"),
        pytest.param({"other": 5}, "0.5", id="then the label"),
        pytest.param({"n": 0}, "0", id="for nothing"),
    ],
)
def test_price_of_a_node(listed, expected):
    (one,) = nodes(node("n", labels={POOL: "spot", TYPE: "m5", "price": "0.5"}))
    assert PriceList.of(listed, "price").price(one) == Decimal(expected)


def test_no_price():
    assert PriceList.of({"x": 1}, "price").price(*nodes(node("n"))) is None


def test_cost_by_pool():
    given = [
        node("a", labels={POOL: "spot"}),
        node("b", labels={POOL: "spot"}),
        node("c", labels={TYPE: "m5"}),
        node("d"),
    ]
    cost = ClusterCost.of(nodes(*given), PriceList.of({"spot": 0.1, "m5": 0.2}))
    assert cost.per_hour == Decimal("0.4")
    assert cost.to_dict() == {
        "perHour": 0.4,
        "pools": {
            "spot": {"nodes": 2, "perHour": 0.2},
            "m5": {"nodes": 1, "perHour": 0.2},
        },
        "unpriced": ["d"],
    }


def test_a_cluster_without_any_price_is_refused():
    with pytest.raises(InputError, match="no node has a price"):
        ClusterCost.of(nodes(node("d")), PriceList.of({"spot": 1}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "a: -1", '"a": a price per hour must be a number from 0 on, is -1', id="below 0"
        ),
        pytest.param("a: free", "must be a number", id="a word"),
        pytest.param("a: true", "must be a number", id="a boolean"),
        pytest.param("a: .inf", "not a value that JSON knows", id="infinite"),
        pytest.param("a: {b: 1}", "must be a number", id="a mapping"),
        pytest.param("a: 0.00000000001", "at most 9 decimal places", id="too exact"),
        pytest.param("- 1", "must map names", id="a list"),
        pytest.param("", "must map names", id="empty"),
        pytest.param("a: 1\na: 2", "already set", id="the same name twice"),
        pytest.param("a: [", "yaml: ", id="not YAML"),
        pytest.param(None, "no such file", id="missing"),
    ],
)
def test_bad_files(tmp_path, text, message):
    file = tmp_path / "prices.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError) as raised:
        prices.load(file, None)
    assert str(raised.value).startswith(f"{file}: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_bad_label():
    (one,) = nodes(node("n", labels={"price": "cheap"}))
    with pytest.raises(InputError, match="Node n, label price: a price per hour must be a number"):
        PriceList.of(label="price").price(one)


@pytest.mark.parametrize(
    ("price", "shown"),
    [
        ("0.1", "0.10"),
        ("4", "4.00"),
        ("0.0960", "0.096"),
        ("12345.5", "12,345.50"),
        ("1E+2", "100.00"),
    ],
)
def test_text(price, shown):
    assert prices.text(Decimal(price)) == shown
