"""The disruption budgets that evictions violate."""

import cProfile
from random import Random

from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.api.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from moorage.framework.cluster import Cluster
from moorage.nodes.template import Templates
from moorage.nodes.usage import Placed
from moorage.plugins.disruption_budgets import Budgets
from moorage.testing import make_node, make_pod

NAMESPACES = ("default", "other")


def budget(name, labels, allowed=0, disrupted=(), namespace="default"):
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=labels)),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted, "")
        ),
    )


def budgets_of(*objects):
    cluster = Cluster()
    for each in objects:
        cluster.put(each)
    return Budgets(cluster)


def placed(templates, name, labels, namespace="default"):
    pod = make_pod(name, labels=labels, namespace=namespace, node="n1")
    return Placed(pod, templates.of(pod).usage)


def by_hand(objects, pods):
    """A simple loop over all pods and budgets."""
    spent, violated = {each.key: 0 for each in objects}, {}
    for pod in pods:
        broken = []
        for each in objects:
            wanted = each.spec.selector.match_labels
            if (
                pod.namespace == each.namespace
                and wanted.items() <= pod.labels.items()
                and pod.name not in each.status.disrupted_pods
            ):
                spent[each.key] += 1
                if spent[each.key] > each.status.disruptions_allowed:
                    broken.append(each.key)
        if broken:
            violated[pod.uid] = tuple(broken)
    return violated


def test_random_pods_and_budgets_agree_with_a_simple_loop():
    rng = Random(5)
    found = 0
    for _ in range(50):
        objects = [
            budget(
                f"budget-{i}",
                {"app": rng.choice("abc"), **({"tier": "web"} if rng.random() < 0.3 else {})},
                rng.randrange(3),
                rng.sample([f"pod-{n}" for n in range(12)], 2),
                rng.choice(NAMESPACES),
            )
            for i in range(5)
        ]
        budgets, templates = budgets_of(*objects), Templates()
        pods = [
            placed(
                templates,
                f"pod-{i}",
                rng.choice(({}, {"app": "a"}, {"app": "b", "tier": "web"}, {"tier": "web"})),
                rng.choice(NAMESPACES),
            )
            for i in range(12)
        ]
        for _ in range(2):  # The second time it is known which budgets select which labels.
            violated = budgets.violated_by(pods)
            assert violated == by_hand(objects, [each.pod for each in pods])
        found += len(violated)
    assert found > 50


def test_what_a_status_changes_is_found_and_the_rest_is_used_again():
    templates = Templates()
    web, db = budget("web", {"app": "web"}), budget("db", {"app": "db"})
    cluster = Cluster()
    cluster.table.set_node(make_node("n0"))
    for name in ("n1", "n2"):
        cluster.table.set_node(make_node(name))
        pod = make_pod(name, labels={"app": "web" if name == "n1" else "db"}, node=name)
        cluster.table.add_pod(name, pod, templates.of(pod).usage)
    for each in (web, db):
        cluster.put(each)
    before = Budgets(cluster)
    pods = [placed(templates, name, {"app": name}) for name in ("web", "db")]
    assert before.violated_by(pods) == {
        "default/web": ("default/web",),
        "default/db": ("default/db",),
    }
    cluster.put(budget("web", {"app": "web"}, allowed=1))
    after = Budgets(cluster, before)
    assert after.violated_by(pods) == {"default/db": ("default/db",)}
    changed = after.changed_since(before)
    assert [(each.key, each.allowed) for each in changed] == [
        ("default/web", 1),
        ("default/web", 0),
    ]
    assert [each.rows(cluster.table) for each in changed] == [{1}, {1}]
    cluster.drop(db)
    last = Budgets(cluster, after)
    assert last.violated_by(pods) == {}
    assert [each.rows(cluster.table) for each in last.changed_since(after)] == [{2}]


def test_pods_with_known_labels_cost_the_same_however_many_budgets_there_are():
    templates = Templates()
    pods = [placed(templates, f"pod-{i}", {"app": f"app-{i % 3}"}) for i in range(20)]

    def calls(count):
        budgets = budgets_of(*[budget(f"app-{i}", {"app": f"app-{i}"}) for i in range(count)])
        budgets.violated_by(pods)
        profiler = cProfile.Profile()
        profiler.runcall(budgets.violated_by, pods)
        return sum(entry.callcount for entry in profiler.getstats())

    assert calls(300) == calls(3)
