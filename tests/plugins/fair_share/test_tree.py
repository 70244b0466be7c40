"""QueueTree: usage kept from the log of pods equals a new count, whatever happens."""

import pickle

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from moorage import plugin as mp
from moorage.api.meta import ObjectMeta
from moorage.api.queues import QUEUE_LABEL, QueueSpec
from moorage.core.cache import Cache
from moorage.nodes.template import Templates
from moorage.plugins.fair_share import FairShare
from moorage.plugins.fair_share.tree import QueueTree
from moorage.testing import check_plugin, make_cluster, make_node, make_pod


def queue(name, parent="", **spec):
    return mp.Queue(metadata=ObjectMeta(name=name), spec=QueueSpec(parent=parent, **spec))


QUEUES = [queue("org"), queue("a", "org", max={"cpu": 4}), queue("b", "org"), queue("c")]
NAMES = ("org", "a", "b", "c", "unknown", "")


def figures(tree):
    tree.refresh()
    return {
        each.path: (
            {name: amount for name, amount in each.used.items() if amount},
            {name: amount for name, amount in each.leaving.items() if amount},
            each.pods_on,
            each.priorities,
            each.rank,
        )
        for each in tree.queues.values()
    }


def pod(number, name, node, terminating):
    labels = {QUEUE_LABEL: name} if name else {}
    made = make_pod(f"p{number}", labels=labels, requests={"cpu": number % 3 + 1}, node=node)
    if terminating:
        gone = structs.replace(made.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        made = structs.replace(made, metadata=gone)
    return made


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("place"),
            st.integers(0, 9),
            st.sampled_from(NAMES),
            st.sampled_from(("n0", "n1")),
            st.booleans(),
        ),
        st.tuples(st.just("remove"), st.integers(0, 9)),
        st.tuples(st.just("move queue"), st.sampled_from(("", "org", "a", "missing"))),
        st.tuples(st.just("node"), st.integers(1, 9)),
        st.tuples(st.just("read")),
    ),
    max_size=30,
)


@given(STEPS)
def test_usage_equals_a_new_count(steps):
    cluster = make_cluster([make_node("n0"), make_node("n1")], objects=QUEUES)
    cache = Cache(cluster.table, Templates())
    tree = cluster.derived(QueueTree)
    on_nodes = set()
    for step in steps:
        match step:
            case ("place", number, name, node, terminating):
                made = pod(number, name, node, terminating)
                if made.uid in on_nodes:
                    cache.update(made)
                else:
                    cache.add(made)
                on_nodes.add(made.uid)
            case ("remove", number):
                uid = pod(number, "", "n0", terminating=False).uid
                cache.remove(uid)
                on_nodes.discard(uid)
            case ("move queue", parent):
                cluster.put(queue("b", parent))
            case ("node", cpu):
                cluster.table.set_node(make_node("n1", allocatable={"cpu": cpu, "pods": 9}))
            case ("read",):
                figures(tree)
    assert figures(tree) == figures(QueueTree(cluster))


def test_a_tree_pickles():
    cluster = make_cluster([make_node("n0")], objects=QUEUES)
    tree = cluster.derived(QueueTree)
    assert figures(pickle.loads(pickle.dumps(tree))) == figures(tree)


def test_conforms():
    check_plugin(FairShare())
