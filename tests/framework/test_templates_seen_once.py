"""The first pod of a template, for which nothing is retained."""

import pytest

from moorage.framework.points import ALWAYS, Depends
from moorage.framework.status import SKIP, SUCCESS, unschedulable
from moorage.testing import make_pod


def like(i, **fields):
    return make_pod(f"p{i}", uid=f"p{i}", labels={"app": f"app-{i}"}, **fields)


class Counting:
    """Records the pods it is called for, and the extension point."""

    name = "Counting"
    depends = Depends.USAGE
    calls: list[tuple[str, str]]

    def __new__(cls, **_):
        cls.calls = []
        return super().__new__(cls)

    def pre_filter(self, state, pod):
        self.calls.append(("pre_filter", pod.name))
        return SUCCESS

    def filter(self, state, pod, node):
        self.calls.append(("filter", pod.name))
        return unschedulable("taken") if node.name == pod.labels["app"] else SUCCESS

    def score(self, state, pod, node):
        return len(pod.labels["app"])


class ByNodes:
    """Reads nothing of the pod, so its results are shared by all pods."""

    name = "ByNodes"
    depends = Depends.NODE
    looked = 0

    def reads(self, pod):
        return None

    def filter(self, state, pod, node):
        type(self).looked += 1
        return SUCCESS


@pytest.fixture
def workbench(bench):
    ByNodes.looked = 0
    return bench([ByNodes, Counting], nodes=("app-1", "n2", "n3"))


def views_of(workbench, pod):
    return workbench.profile.views.of(workbench.templates.of(pod))


def test_templates_seen_once_share_views(workbench):
    views_of(workbench, like(1))
    second, third = views_of(workbench, like(2)), views_of(workbench, like(3))
    assert not second.retains
    assert second is third


def test_each_template_gets_results_of_its_own(workbench):
    assert workbench.run(like(1)).fits == ["n2", "n3"]
    assert workbench.run(like(2)).fits == ["app-1", "n2", "n3"]
    ByNodes.looked = 0
    assert workbench.run(like(11)).total("n2") == len("app-11")
    assert ByNodes.looked == 0  # Nothing else is read of this pod.


class ByName(ByNodes):
    """Reads of every pod what it reads of no other."""

    name = "ByName"

    def reads(self, pod):
        return pod.name

    def filter(self, state, pod, node):
        return SUCCESS if node.name == f"n{len(pod.name)}" else unschedulable("another")


def test_what_a_plugin_reads_for_the_first_time_does_not_tell_views_apart(bench):
    workbench = bench([ByNodes, ByName], nodes=("n1", "n2", "n3"))
    views_of(workbench, like(1))
    assert views_of(workbench, like(2)) is views_of(workbench, like(3))
    assert workbench.run(like(4)).fits == ["n2"]
    assert workbench.run(like(55)).fits == ["n3"]


def test_a_template_seen_twice_has_its_own_views(workbench):
    shared = views_of(workbench, like(1))
    own = views_of(workbench, like(1))
    assert own is not shared
    assert views_of(workbench, like(1)) is own


def test_a_template_of_several_pods_has_its_own_views_at_once(workbench):
    workbench.templates.of(like(1))
    assert views_of(workbench, like(1)).retains


def test_shared_views_are_dropped_when_unused(bench):
    reading = type("Reading", (ByNodes,), {"name": "Reading", "reads": lambda _, pod: pod.name})
    workbench = bench([reading])
    for i in range(100):
        assert workbench.run(like(i)).fits == ["n1", "n2", "n3"]
    assert len(workbench.profile.views._plugin_views["Reading"]) < 100


class SkippingPriorityZero:
    """Skips pods of priority 0."""

    name = "SkippingPriorityZero"
    depends = Depends.PLACEMENTS

    def skip_key(self, state, pod):
        if pod.labels.get("fail"):
            raise ValueError("odd")
        return ALWAYS if pod.priority == 0 else None

    def pre_filter(self, state, pod):
        return SKIP if pod.priority == 0 else SUCCESS

    def filter(self, state, pod, node):
        return SUCCESS if node.name == "n1" else unschedulable("not n1")


def test_skipping_plugins_are_found_for_every_pod(bench):
    workbench = bench([SkippingPriorityZero])
    assert workbench.run(like(1)).state.idle == {"SkippingPriorityZero"}
    results = workbench.run(like(2, priority=5))
    assert results.state.idle == frozenset()
    assert results.fits == ["n1"]
    assert workbench.run(like(3)).fits == ["n1", "n2", "n3"]
    failing = make_pod("p4", labels={"fail": "yes"})
    assert workbench.run(failing).state.idle == frozenset()


# Results that depend on the pod only


class Preparing:
    name = "Preparing"
    depends = Depends.USAGE

    def prepare(self, template):
        if "bad" in template.exemplar.labels:
            raise SystemExit("bad")
        template.compiled[self.name] = template.compiled.get(self.name, 0) + 1

    def filter(self, state, pod, node):
        return SUCCESS if state.template.compiled.get(self.name) else unschedulable("not prepared")


def test_a_template_is_prepared_once(bench):
    workbench = bench([Preparing])
    template = workbench.templates.of(like(1))
    workbench.profile.prepare(template)
    workbench.profile.prepare(template)
    assert template.compiled["Preparing"] == 1
    assert workbench.run(like(1)).fits == ["n1", "n2", "n3"]


def test_an_error_in_prepare_is_not_reported_before_the_cycle(bench):
    workbench = bench([Preparing])
    pod = make_pod("p", labels={"bad": "yes"})
    workbench.profile.prepare(workbench.templates.of(pod))
    assert workbench.run(pod).fits == []


def test_an_error_in_reads_is_reported_in_the_cycle(bench):
    def reads(self, pod):
        raise ValueError("odd")

    workbench = bench([type("Odd", (ByNodes,), {"name": "Odd", "reads": reads})])
    workbench.profile.prepare(workbench.templates.of(like(1)))
    with pytest.raises(Exception, match='plugin "Odd": reads: '):
        workbench.run(like(1))
