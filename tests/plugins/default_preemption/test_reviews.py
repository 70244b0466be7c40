"""Extenders in preemption. Numbers are rows of the specification."""

import pytest

from moorage.framework.status import Code

NO_CANDIDATE = "preemption: no candidate node for preemption"


class Extender:
    """Keeps some candidates, or fails."""

    def __init__(self, *keeps, ignorable=False, interested=True, empty=(), error=None):
        self.keeps, self.ignorable, self.error = keeps, ignorable, error
        self._interested, self._empty = interested, empty

    def is_interested(self, pod):
        return self._interested

    def review(self, pod, candidates):
        if self.error:
            raise self.error
        kept = {node: each for node, each in candidates.items() if node in self.keeps}
        return {
            node: type(each)(node, ()) if node in self._empty else each
            for node, each in kept.items()
        }


@pytest.mark.parametrize(
    ("extenders", "nominated", "text"),
    [
        pytest.param([Extender("n1")], "n1", "", id="34: keeps one candidate, not the best"),
        pytest.param([Extender()], None, NO_CANDIDATE, id="35: keeps none"),
        pytest.param(
            [Extender(ignorable=True, error=OSError("down")), Extender("n1")],
            "n1",
            "",
            id="36: the first fails and may be ignored",
        ),
        pytest.param(
            [Extender(error=OSError("down")), Extender("n1")],
            None,
            "preemption: down",
            id="the first fails and may not be ignored",
        ),
        pytest.param([Extender(interested=False)], "n3", "", id="37: not interested"),
        pytest.param(
            [Extender("n1", "n2", empty=["n1"])],
            None,
            'preemption: expected at least one victim pod on node "n1"',
            id="38: a node without victims",
        ),
        pytest.param(
            [Extender("n1", "n2", empty=["n1"], ignorable=True)],
            "n2",
            "",
            id="39: a node without victims from an ignorable extender",
        ),
        pytest.param(
            [Extender("n1", "n2"), Extender("n2", "n3")], "n2", "", id="two extenders in order"
        ),
    ],
)
def test_34_to_39_extenders(bench, make, extenders, nominated, text):
    cluster = bench()
    for name, priority in (("n1", "mid"), ("n2", "mid"), ("n3", "low")):
        cluster.add(make.node(name), make.pod(f"on-{name}", priority, node=name))
    result = cluster.decide(make.pod("p", "high"), reviewers=extenders).post_filter
    assert (result.nominated, result.status.message) == (nominated, text)
    assert result.status.code is not Code.SUCCESS or result.victims[0].name == f"on-{nominated}"


def test_an_extender_may_name_other_victims(bench, make):
    class AddsVictims(Extender):
        def review(self, pod, candidates):
            found = candidates["n1"]
            return {"n1": replace_victims(found, (*found.victims, extra))}

    def replace_victims(candidate, victims):
        return type(candidate)(candidate.node, victims, candidate.violations, candidate.budgets)

    extra = make.pod("extra", "low", "S", node="n1")
    cluster = bench().add(make.node("n1", 600), extra, make.pod("there", "low", node="n1"))
    result = cluster.decide(make.pod("p", "high"), reviewers=[AddsVictims()]).post_filter
    assert {victim.name for victim in result.victims} == {"there", "extra"}
