"""The cheapest mix of new nodes, against every mix there is."""

from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.planning.conftest import node, pod

from moorage.api import manifests
from moorage.errors import InputError
from moorage.planning import node_templates
from moorage.planning.add_nodes import NodeCountSearch, add_nodes
from moorage.planning.input_cluster import InputCluster
from moorage.planning.prices import PriceList

SMALL = node("small", 2000, 4096)
LARGE = node("large", 8000, 16384)
WIDE = node("wide", 3000, 32768)
FULL = node("full", 0)


def prices(**per_hour):
    return PriceList.of(per_hour)


def by_brute_force(objects, templates, per_hour, most):
    """The least cost of all mixes of up to so many nodes of each template."""
    cluster = InputCluster.of(objects, nodes_follow=True)
    read = node_templates.read(manifests.read(templates).everything, cluster)
    search = NodeCountSearch(cluster, read, seed=0, on_try=None)
    costs = {
        counts: sum(price * count for price, count in zip(per_hour, counts, strict=True))
        for counts in product(range(most + 1), repeat=len(read))
    }
    for counts in sorted(costs, key=costs.__getitem__):
        if not search.pack(counts).left:
            return costs[counts]
    return None


@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), min_size=1, max_size=6),
    st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(1, 9)),
)
@settings(max_examples=settings.default.max_examples // 4, deadline=None)
def test_no_mix_is_cheaper(sizes, per_hour):
    pods = [pod(f"p{i}", 250 * c, 512 * m) for i, (c, m) in enumerate(sizes)]
    objects, templates = [node("there", 1000, 1024), *pods], [SMALL, LARGE, WIDE]
    names = dict(zip(("small", "large", "wide"), per_hour, strict=True))
    got = add_nodes(objects, templates, prices=prices(**names))
    # No more nodes than pods are ever needed.
    assert got.cost.per_hour == by_brute_force(objects, templates, per_hour, len(pods))
    assert got.cost.is_cheapest
    assert sum(names[name] * count for name, count in got.counts.items()) == got.cost.per_hour


def test_the_cheapest_is_not_the_fewest():
    objects = [FULL, *(pod(f"p{i}", 1000) for i in range(9))]
    assert add_nodes(objects, [SMALL, LARGE]).counts == {"small": 0, "large": 2}
    got = add_nodes(objects, [SMALL, LARGE], prices=prices(small="0.1", large="0.35"))
    assert got.counts == {"small": 1, "large": 1}
    assert got.cost.to_dict() == {
        "perHour": 0.45,
        "lowerBound": 0.45,
        "cheapest": True,
        "prices": {"small": 0.1, "large": 0.35},
    }


def test_fewer_nodes_at_the_same_cost():
    objects = [FULL, *(pod(f"p{i}", 1000) for i in range(16))]
    got = add_nodes(objects, [SMALL, LARGE], prices=prices(small=1, large=4))
    assert got.counts == {"small": 0, "large": 2}


def test_whole_pods_are_counted():
    # Three pods of 3 CPUs fit on a node with 11, not 3.67.
    objects = [FULL, *(pod(f"p{i}", 3000) for i in range(90))]
    templates = [node("eleven", 11000), node("four", 4000)]
    got = add_nodes(objects, templates, prices=prices(eleven=2, four=1))
    assert got.counts == {"eleven": 30, "four": 0}
    assert got.cost.is_cheapest
    assert got.tries < 20


def test_a_search_that_ends_early_says_so():
    sizes = [700 + 130 * (i % 7) for i in range(20)]
    objects = [FULL, *(pod(f"p{i}", size) for i, size in enumerate(sizes))]
    given = prices(small="0.21", large="0.8", wide="0.3")
    got = add_nodes(objects, [SMALL, LARGE, WIDE], prices=given, most_tries=0)
    assert got.cost.lower_bound < got.cost.per_hour
    assert not got.cost.is_cheapest
    better = add_nodes(objects, [SMALL, LARGE, WIDE], prices=given)
    assert got.cost.lower_bound <= better.cost.per_hour <= got.cost.per_hour


def test_nothing_is_needed():
    got = add_nodes([node("n"), pod("p", 1000)], [SMALL], prices=prices(small=1))
    assert (got.total, got.cost.per_hour, got.cost.is_cheapest) == (0, Decimal(0), True)


def test_pods_that_fit_no_template_cost_nothing():
    got = add_nodes([FULL, pod("huge", 90_000)], [SMALL], prices=prices(small=1))
    assert (list(got.impossible), got.cost.per_hour) == (["default/huge"], Decimal(0))


def test_a_template_without_a_price_is_refused():
    with pytest.raises(InputError, match=r"^template large: has no price$"):
        add_nodes([FULL, pod("p", 1000)], [SMALL, LARGE], prices=prices(small=1))
