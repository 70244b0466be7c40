"""Extenders: when they are called, and how results are used. Numbers are specification rows."""

import pytest
from msgspec.structs import replace

from moorage import Simulation
from moorage.api import config
from moorage.api.pod import Container, PodStatus, ResourceRequirements
from moorage.api.server_requests import BindPod, LookUpPod, PodRef
from moorage.core import extenders
from moorage.core.extenders import ExtenderVictims, FilterResult
from moorage.core.journal import Decided, Erred, Refused
from moorage.framework.status import SUCCESS, unschedulable
from moorage.plugins.default_preemption import DefaultPreemption
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.testing import make_node, make_pod

POD = make_pod("p", uid="uid-p", requests={"cpu": "1"})
NODES = ("n1", "n2", "n3")


class Service:
    """An extender in the same process; a result may be a value, a function or an exception."""

    def __init__(self, *, passes=None, scores=None, victims=None, **settings):
        verbs = {
            "filter_verb": passes is not None,
            "prioritize_verb": scores is not None,
            "preempt_verb": victims is not None,
        }
        chosen = {verb: "v" for verb, offered in verbs.items() if offered}
        defaults = {"url_prefix": "http://e", "weight": 1}
        self.settings = config.Extender(**{**defaults, **chosen, **settings})
        self.asked = []
        self._answers = {"filter": passes, "prioritize": scores, "preempt": victims}

    def filter(self, pod, nodes):
        names = [node.name for node in nodes]
        answer = self._answer("filter", names)
        return answer if isinstance(answer, FilterResult) else FilterResult(nodes=answer)

    def prioritize(self, pod, nodes):
        return self._answer("prioritize", [node.name for node in nodes]).items()

    def preempt(self, pod, candidates):
        return self._answer("preempt", candidates)

    def _answer(self, verb, asked):
        self.asked.append((verb, list(asked)))
        answer = self._answers[verb]
        if isinstance(answer, Exception):
            raise answer
        return answer(asked) if callable(answer) else answer


def everything(names):
    return names


def facts(machine, kind):
    return machine.facts(POD, kind)


# Interest


def asking(**resources):
    return make_pod(containers=(Container(resources=ResourceRequirements(**resources)),))


@pytest.mark.parametrize(
    ("pod", "managed", "interested"),
    [
        pytest.param(make_pod(), (), True, id="21: nothing managed, every pod"),
        pytest.param(make_pod(), ("a/b",), False, id="21: a pod that does not ask for it"),
        pytest.param(asking(requests={"a/b": "1"}), ("a/b",), True, id="requested"),
        pytest.param(asking(requests={"a/b": "0"}), ("a/b",), True, id="21: zero counts"),
        pytest.param(asking(limits={"a/b": "1"}), ("a/b",), True, id="21: in the limits"),
        pytest.param(asking(limits={"a/b": "1"}), ("a/c", "a/b"), True, id="one of several"),
        pytest.param(
            make_pod(
                containers=(Container(),),
                init_containers=(Container(resources=ResourceRequirements(requests={"a/b": "1"})),),
            ),
            ("a/b",),
            True,
            id="21: of an init container",
        ),
        pytest.param(
            make_pod(resources=ResourceRequirements(requests={"a/b": "1"})),
            ("a/b",),
            False,
            id="the pod as a whole is not looked at",
        ),
    ],
)
def test_interest(pod, managed, interested):
    resources = tuple(config.ExtenderManagedResource(name=name) for name in managed)
    assert extenders.is_interested(config.Extender(managed_resources=resources), pod) == interested


def test_24_an_extender_that_is_not_interested_is_never_called(machine):
    managed = (config.ExtenderManagedResource(name="a/b"),)
    service = Service(passes=OSError(), scores=OSError(), managed_resources=managed)
    assert machine(extenders=[service]).schedule(POD)
    assert service.asked == []


# Filter


@pytest.mark.parametrize(
    ("services", "node"),
    [
        pytest.param([Service(passes=["n2"])], "n2", id="one node is left"),
        pytest.param(
            [Service(passes=["n1", "n2"]), Service(passes=["n2"])], "n2", id="one after the other"
        ),
        pytest.param(
            [Service(passes=OSError("down"), ignorable=True), Service(passes=["n1"])],
            "n1",
            id="22: one that may be ignored fails",
        ),
        pytest.param(
            [Service(passes=["n9"], ignorable=True), Service(passes=["n3"])],
            "n3",
            id="27: an unexpected node, ignored",
        ),
        pytest.param([Service(scores={"n2": 1})], "n2", id="no filter verb: everything passes"),
    ],
)
def test_filter_leaves_a_node(machine, services, node):
    made = machine(extenders=services)
    made.schedule(POD)
    (decided,) = facts(made, Decided)
    assert decided.node == node


def test_filter_calls_extenders_in_order_with_ignorable_ones_last(machine):
    first = Service(passes=["n1", "n3"], ignorable=True)
    second = Service(passes=["n3", "n1", "n2"])
    machine(extenders=[first, second]).schedule(POD)
    assert (second.asked, first.asked) == (
        [("filter", ["n1", "n2", "n3"])],
        [("filter", ["n3", "n1", "n2"])],
    )


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        pytest.param(OSError("connection refused"), "connection refused", id="22, 29: it fails"),
        pytest.param(
            ["n9"],
            'extender "http://e" claims a filtered node "n9" which is not found in the input '
            "node list",
            id="27: an unexpected node",
        ),
    ],
)
def test_an_error_fails_the_attempt(machine, raised, text):
    made = machine(DefaultPreemption, extenders=[Service(passes=raised)])
    made.schedule(POD)
    (erred,) = facts(made, Erred)
    assert erred.message == text
    assert made.where(POD) == "backoff"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(
            FilterResult(failed={"n1": "busy", "n2": "busy", "n3": "odd"}),
            "0/3 nodes are available: 1 odd, 2 busy.",
            id="22: all are refused",
        ),
        pytest.param(
            FilterResult(failed={"n1": "a"}, unresolvable={"n1": "b", "n2": "b", "n3": "b"}),
            "0/3 nodes are available: 3 b.",
            id="26: what cannot be cured beats what can",
        ),
        pytest.param(FilterResult(), "0/3 nodes are available:", id="rejected without a message"),
        pytest.param(
            FilterResult(failed={"n1": "x", "other": "y"}),
            "0/3 nodes are available: 1 x.",
            id="a node that is not there",
        ),
    ],
)
def test_all_refused(machine, answer, text):
    made = machine(extenders=[Service(passes=answer)])
    made.schedule(POD)
    (refused,) = facts(made, Refused)
    assert refused.message == text
    assert refused.plugins == ("Extender",)
    assert refused.rejected_by == {"Extender": 3}


def test_50_filters_and_extenders_together(machine):
    class OnlyThird:
        name = "OnlyThird"

        def filter(self, state, pod, node):
            return unschedulable("third") if node.name == "n3" else SUCCESS

    failed = {"n1": "x", "n2": "x", "n3": "must not show"}
    made = machine(OnlyThird, extenders=[Service(passes=FilterResult(failed=failed))])
    made.schedule(POD)
    (refused,) = facts(made, Refused)
    assert refused.message == "0/3 nodes are available: 1 third, 2 x."
    assert refused.plugins == ("Extender", "OnlyThird")
    assert refused.rejected_by == {"OnlyThird": 1, "Extender": 2}


def test_any_change_requeues_a_pod_that_an_extender_rejected(machine):
    made = machine(extenders=[Service(passes=FilterResult())])
    made.schedule(POD)
    assert made.where(POD) == "unschedulable"
    made.add(make_node("n4"))
    assert made.where(POD) == "backoff"


def test_25_without_scores_a_sample_of_one_is_enough_unless_an_extender_filters(machine):
    nodes = [f"n{i}" for i in range(200)]
    asked = Service(passes=everything)
    made = machine(nodes=nodes, percentageOfNodesToScore=0, extenders=[asked])
    made.schedule(POD)
    assert len(asked.asked[0][1]) == 100
    alone = machine(nodes=nodes, percentageOfNodesToScore=0, extenders=[Service()])
    alone.schedule(POD)
    assert facts(alone, Decided)[0].feasible == 1


def test_of_nodes_that_a_sample_left_out_nothing_is_said(machine):
    class Odd:
        name = "Odd"

        def filter(self, state, pod, node):
            return SUCCESS if int(node.name[1:]) % 2 else unschedulable("even")

    nodes = [f"n{i}" for i in range(400)]
    made = machine(
        Odd,
        nodes=nodes,
        percentageOfNodesToScore=25,
        extenders=[Service(passes=FilterResult())],
    )
    made.schedule(POD)
    (refused,) = facts(made, Refused)
    assert refused.rejected_by == {"Odd": 101, "Extender": 100}
    assert refused.message == "0/400 nodes are available: 101 even."


@pytest.mark.parametrize(
    ("passes", "node"),
    [
        pytest.param(everything, "n2", id="the nominated node is enough"),
        pytest.param(
            lambda names: [name for name in names if name != "n2"], "n1", id="it is refused"
        ),
    ],
)
def test_the_nominated_node_is_filtered_alone(machine, passes, node):
    pod = replace(POD, status=PodStatus(nominated_node_name="n2"))
    service = Service(passes=passes)
    made = machine(nodes=("n1", "n2"), extenders=[service])
    made.schedule(pod)
    assert service.asked[0] == ("filter", ["n2"])
    assert facts(made, Decided)[0].node == node


# Prioritize


@pytest.mark.parametrize(
    ("services", "node"),
    [
        pytest.param([Service(scores={"n2": 1})], "n2", id="the best wins"),
        pytest.param(
            [Service(scores={"n1": 10}), Service(scores={"n2": 10}, weight=5)],
            "n2",
            id="23: the heavier wins",
        ),
        pytest.param(
            [Service(scores=OSError()), Service(scores={"n3": 1})],
            "n3",
            id="22: the scores of a failing extender are ignored, even if it is not ignorable",
        ),
        pytest.param([Service(scores={"n1": -9, "n2": -8, "n3": -9})], "n2", id="below zero"),
        pytest.param([Service(scores={"other": 10, "n1": 1})], "n1", id="a node not in question"),
        pytest.param([Service(scores={"n1": 2**62, "n2": 1})], "n2", id="more than 64 bits hold"),
    ],
)
def test_prioritize(machine, services, node):
    made = machine(extenders=services)
    made.schedule(POD)
    assert facts(made, Decided)[0].node == node


@pytest.mark.usefixtures("best_nodes")
def test_scores_are_scaled_and_weighed(machine):
    made = machine(extenders=[Service(scores={"n1": 3}, weight=2)])
    made.schedule(POD)
    best = facts(made, Decided)[0].best[0]
    assert (best.node, best.total, best.scores) == ("n1", 60, {"Extender http://e": 60})


def test_a_single_node_is_not_scored(machine):
    service = Service(scores={"n1": 1})
    machine(nodes=("n1",), extenders=[service]).schedule(POD)
    assert service.asked == []


# Preempt

LOW = make_pod("low", uid="low", requests={"cpu": "4"}, node="n1", priority=1)
LOW2 = make_pod("low2", uid="low2", requests={"cpu": "4"}, node="n2", priority=1)
HIGH = make_pod("high", uid="high", requests={"cpu": "4"}, priority=9)


def preempting(machine, *services):
    made = machine(
        NodeResourcesFit, DefaultPreemption, nodes=("n1", "n2"), extenders=list(services)
    )
    made.add(LOW, LOW2)
    made.schedule(HIGH)
    return made


@pytest.mark.parametrize(
    ("services", "nominated"),
    [
        pytest.param(
            [Service(victims={"n2": ExtenderVictims(("low2",))})], "n2", id="it strikes a node off"
        ),
        pytest.param(
            [
                Service(victims=OSError(), ignorable=True),
                Service(victims={"n1": ExtenderVictims(("low",))}),
            ],
            "n1",
            id="one that may be ignored fails",
        ),
        pytest.param(
            [
                Service(
                    victims={"n1": ExtenderVictims(()), "n2": ExtenderVictims(("low2",))},
                    ignorable=True,
                )
            ],
            "n2",
            id="a node without victims is dropped",
        ),
        pytest.param(
            [
                Service(
                    victims={
                        "n1": ExtenderVictims(("low",), 2),
                        "n2": ExtenderVictims(("low2",), 1),
                    }
                )
            ],
            "n2",
            id="28: violations are the extender's",
        ),
    ],
)
def test_preempt(machine, services, nominated):
    made = preempting(machine, *services)
    (refused,) = made.facts(HIGH, Refused)
    assert refused.nominated == nominated


@pytest.mark.parametrize(
    ("victims", "text"),
    [
        pytest.param(OSError("down"), "preemption: down", id="it fails"),
        pytest.param({}, "preemption: no candidate node for preemption", id="nothing is left"),
        pytest.param(
            {"n1": ExtenderVictims(())},
            'preemption: expected at least one victim pod on node "n1"',
            id="a node without victims",
        ),
        pytest.param(
            {"n1": ExtenderVictims(("low2",))},
            "preemption: extender: http://e claims to preempt pod (UID: &{low2}) on node: n1, but "
            "the pod is not found on that node",
            id="a pod of another node",
        ),
        pytest.param(
            {"n9": ExtenderVictims(("low",))},
            'preemption: nodeinfo not found for node name "n9"',
            id="a node that is not there",
        ),
    ],
)
def test_preemption_in_vain(machine, victims, text):
    made = preempting(machine, Service(victims=victims))
    (refused,) = made.facts(HIGH, Refused)
    assert refused.message == f"0/2 nodes are available: 2 Insufficient cpu. {text}"


def test_an_extender_without_a_preempt_verb_is_not_called(machine):
    service = Service(passes=everything)
    preempting(machine, service)
    assert service.asked == []


# Bind


def test_an_extender_binds_before_the_plugins(machine):
    made = machine(extenders=[Service(bind_verb="bind")])
    requests = made.schedule(POD)
    (bind,) = [each for each in requests if isinstance(each, BindPod)]
    assert (bind.pod, bind.extender) == (PodRef.of(POD), "http://e")
    made.answer(BindPod)
    assert "Bound" in made.story(POD)


def test_who_may_be_ignored_leaves_binding_to_the_plugins(machine):
    made = machine(extenders=[Service(bind_verb="bind", ignorable=True)])
    made.schedule(POD)
    (again,) = made.fail(BindPod, "down")
    assert isinstance(again, BindPod)
    assert again.extender == ""


def test_a_failed_binding_fails_the_attempt(machine):
    made = machine(extenders=[Service(bind_verb="bind")])
    made.schedule(POD)
    made.fail(BindPod, "failed bind with extender at URL http://e, code 500")
    (erred,) = facts(made, Erred)
    assert erred.message == "failed bind with extender at URL http://e, code 500"


def test_no_other_binder_is_called_before_an_unknown_outcome_is_known(machine):
    made = machine(extenders=[Service(bind_verb="bind", ignorable=True)])
    made.schedule(POD)
    made.lose(BindPod, "timed out")
    (asked,) = made.advance()
    assert isinstance(asked, LookUpPod)


# In a simulation


def test_a_simulation_takes_an_extender_written_in_python():
    objects = [make_node(name) for name in NODES] + [make_pod(f"p{i}") for i in range(3)]
    simulation = Simulation(objects, extenders=[Service(passes=["n2"], bind_verb="bind")])
    simulation.run()
    assert set(simulation.placements.values()) == {"n2"}
