"""The first pod of a template, about which nothing is kept."""

import pytest

from moorage.framework.newcomers import Newcomers
from moorage.framework.points import ALWAYS, Depends
from moorage.framework.status import SKIP, SUCCESS, unschedulable
from moorage.testing import make_pod


def like(i, **fields):
    return make_pod(f"p{i}", uid=f"p{i}", labels={"app": f"app-{i}"}, **fields)


class Counting:
    """Notes which pods it is asked about, at which point."""

    name = "Counting"
    depends = Depends.USAGE
    asked: list[tuple[str, str]]

    def __new__(cls, **_):
        cls.asked = []
        return super().__new__(cls)

    def pre_filter(self, state, pod):
        self.asked.append(("pre_filter", pod.name))
        return SUCCESS

    def filter(self, state, pod, node):
        self.asked.append(("filter", pod.name))
        return unschedulable("taken") if node.name == pod.labels["app"] else SUCCESS

    def score(self, state, pod, node):
        return len(pod.labels["app"])


class ByNodes:
    """Reads nothing of a pod, and so is asked once for all of them."""

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


def sheet_of(workbench, pod):
    return workbench.profile.sheets.of(workbench.templates.of(pod))


def test_all_of_a_family_are_looked_at_on_one_sheet(workbench):
    first, second = sheet_of(workbench, like(1)), sheet_of(workbench, like(2))
    assert isinstance(first, Newcomers)
    assert first is second


def test_each_gets_answers_of_its_own(workbench):
    assert workbench.ask(like(1)).fits == ["n2", "n3"]
    assert workbench.ask(like(2)).fits == ["app-1", "n2", "n3"]
    assert workbench.ask(like(11)).total("n2") == len("app-11")
    assert ByNodes.looked == 3  # Once for every node.


def test_who_comes_again_has_a_sheet_of_its_own(workbench):
    newcomers = sheet_of(workbench, like(1))
    own = sheet_of(workbench, like(1))
    assert own is not newcomers
    assert sheet_of(workbench, like(1)) is own


def test_one_of_several_has_a_sheet_of_its_own_at_once(workbench):
    workbench.templates.of(like(1))
    assert not isinstance(sheet_of(workbench, like(1)), Newcomers)


def test_many_families_come_and_go(bench):
    reading = type("Reading", (ByNodes,), {"name": "Reading", "reads": lambda _, pod: pod.name})
    workbench = bench([reading])
    for i in range(100):
        assert workbench.ask(like(i)).fits == ["n1", "n2", "n3"]
    assert len(workbench.profile.sheets._families) < 100


class Choosy:
    """Has nothing to do with pods of priority 0."""

    name = "Choosy"
    depends = Depends.PLACEMENTS

    def skip_key(self, state, pod):
        if pod.labels.get("trouble"):
            raise ValueError("odd")
        return ALWAYS if pod.priority == 0 else None

    def pre_filter(self, state, pod):
        return SKIP if pod.priority == 0 else SUCCESS

    def filter(self, state, pod, node):
        return SUCCESS if node.name == "n1" else unschedulable("not n1")


def test_who_is_idle_is_found_out_for_every_pod(bench):
    workbench = bench([Choosy])
    assert workbench.ask(like(1)).state.idle == {"Choosy"}
    asked = workbench.ask(like(2, priority=5))
    assert asked.state.idle == frozenset()
    assert asked.fits == ["n1"]
    assert workbench.ask(like(3)).fits == ["n1", "n2", "n3"]
    trouble = make_pod("p4", labels={"trouble": "yes"})
    assert workbench.ask(trouble).state.idle == frozenset()


# What follows from the pod alone


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
    assert workbench.ask(like(1)).fits == ["n1", "n2", "n3"]


def test_trouble_with_preparing_is_not_told_before_it_matters(bench):
    workbench = bench([Preparing])
    pod = make_pod("p", labels={"bad": "yes"})
    workbench.profile.prepare(workbench.templates.of(pod))
    assert workbench.ask(pod).fits == []


def test_trouble_with_reading_is_told_when_the_pod_is_asked_about(bench):
    def reads(self, pod):
        raise ValueError("odd")

    workbench = bench([type("Odd", (ByNodes,), {"name": "Odd", "reads": reads})])
    workbench.profile.prepare(workbench.templates.of(like(1)))
    with pytest.raises(Exception, match='plugin "Odd": reads: '):
        workbench.ask(like(1))
