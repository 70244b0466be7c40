import pytest

from moorage.api.meta import NodeName, ObjectMeta
from moorage.api.node import Node, NodeStatus
from moorage.api.pod import Container, Pod, PodSpec, ResourceRequirements
from moorage.api.server_requests import BindPod, LookUpPod, PodRef
from moorage.core.effects import Done, Effect, Failed, Ticket, Unknown
from moorage.core.observations import Added, Deleted, Listed, Updated
from moorage.sim.history import ContractViolation, HistoryChecker, ObservedState, shortage


def make_node(name="n1", *, cpu="2", pods="3", version="1") -> Node:
    meta = ObjectMeta(name=name, uid=name, resource_version=version)
    return Node(metadata=meta, status=NodeStatus(allocatable={"cpu": cpu, "pods": pods}))


def make_pod(name="web", *, cpu="1", node="", uid="", version="1") -> Pod:
    meta = ObjectMeta(name=name, namespace="default", uid=uid or name, resource_version=version)
    wants = ResourceRequirements(requests={"cpu": cpu})
    spec = PodSpec(node_name=node, containers=(Container(name="c", resources=wants),))
    return Pod(metadata=meta, spec=spec)


def checker(*objects) -> HistoryChecker:
    history = HistoryChecker()
    for obj in objects:
        history.observe(Added(obj))
    return history


def bind(history: HistoryChecker, pod: Pod, node="n1", ticket=1) -> None:
    request = BindPod(PodRef.of(pod), NodeName(node))
    history.check_effects([Effect(Ticket(ticket), request)], lambda uid: True, checks_room=True)


def look_up(history: HistoryChecker, pod: Pod, answer: Pod | None) -> None:
    request = LookUpPod(PodRef.of(pod))
    history.check_effects([Effect(Ticket(90), request)], lambda uid: False, checks_room=True)
    history.complete(Ticket(90), Done(answer))


WEB = make_pod()


@pytest.mark.parametrize(
    ("known", "text"),
    [
        pytest.param([make_node()], "was not told of", id="unknown"),
        pytest.param([make_node(), make_pod(uid="x")], "was not told of", id="another UID"),
        pytest.param([make_node(), make_pod(node="n2")], "on n2 already", id="on a node"),
        pytest.param([WEB], "n1, which is not there", id="to a node that is not there"),
        pytest.param(
            [make_node(), WEB, make_pod("a", node="n1"), make_pod("b", node="n1")],
            "cpu: 2000 of 2000 are used, 1000 are asked for",
            id="without room",
        ),
    ],
)
def test_complains_about_a_bind(known, text):
    with pytest.raises(ContractViolation, match=text):
        bind(checker(*known), WEB)


def test_what_was_asked_for_counts_at_once():
    other = make_pod("other", cpu="1500m")
    history = checker(make_node(), WEB, other)
    bind(history, WEB)
    with pytest.raises(ContractViolation, match="1000 of 2000 are used"):
        bind(history, other, ticket=2)


@pytest.mark.parametrize(
    ("outcome", "may"),
    [
        pytest.param(Failed("no"), True, id="once it failed"),
        pytest.param(Unknown("?"), False, id="not while the outcome is unknown"),
        pytest.param(Done(), False, id="not once it is done"),
        pytest.param(None, False, id="not before an answer"),
    ],
)
def test_asking_again(outcome, may):
    history = checker(make_node(), WEB)
    bind(history, WEB)
    if outcome is not None:
        history.complete(Ticket(1), outcome)
    if may:
        bind(history, WEB, ticket=2)
    else:
        with pytest.raises(ContractViolation, match="again before it knows"):
            bind(history, WEB, ticket=2)


def test_a_look_up_settles_what_nobody_knew():
    history = checker(make_node(), WEB)
    bind(history, WEB)
    history.complete(Ticket(1), Unknown("?"))
    look_up(history, WEB, WEB)
    bind(history, WEB, ticket=2)
    look_up(history, WEB, make_pod(node="n1", version="2"))
    with pytest.raises(ContractViolation, match="on n1 already"):
        bind(history, WEB, ticket=3)


def test_what_was_decided_earlier_goes_its_way():
    history = checker(make_node(cpu="0"), make_pod(node="n2"))
    request = BindPod(PodRef.of(WEB), NodeName("n1"))
    history.check_effects([Effect(Ticket(1), request)], lambda uid: False, checks_room=True)
    assert history.excuses(Ticket(1), make_node(cpu="0"), [WEB])


def test_what_excuses_an_overcommitted_node():
    node, stranger, own = make_node(), make_pod("stranger"), make_pod("own", cpu="100m")
    history = checker(node, WEB, own, make_pod("there", cpu="100m", node="n1"))
    bind(history, WEB)
    bind(history, own, ticket=2)
    there = [make_pod("there"), WEB, own]
    assert not history.excuses(Ticket(1), node, there)
    assert history.excuses(Ticket(1), node, [*there, stranger])
    assert history.excuses(Ticket(1), make_node(version="2"), there)


@pytest.mark.parametrize(
    ("pod", "others", "problem"),
    [
        pytest.param(WEB, [make_pod("a")], "", id="just enough"),
        pytest.param(WEB, [make_pod("a", cpu="1001m")], "cpu: 1001 of 2000", id="too little"),
        pytest.param(make_pod(cpu="0"), [make_pod("a", cpu="9")], "", id="asks for nothing"),
        pytest.param(WEB, [WEB, make_pod("a")], "", id="is not counted twice"),
        pytest.param(
            make_pod(cpu="0"),
            [make_pod(x, cpu="0") for x in "abc"],
            "3 pods are there, 3 is the most",
            id="too many pods",
        ),
    ],
)
def test_no_room(pod, others, problem):
    found = shortage(pod, make_node(), others)
    assert found.startswith(problem) if problem else not found


@pytest.mark.parametrize(
    ("observations", "known"),
    [
        pytest.param([Added(WEB)], {"web": "1"}, id="added"),
        pytest.param([Updated(WEB)], {"web": "1"}, id="updated, though unknown"),
        pytest.param([Added(WEB), Deleted(WEB)], {}, id="deleted"),
        pytest.param([Added(WEB), Deleted(WEB), Added(WEB)], {}, id="the dead stay dead"),
        pytest.param(
            [Added(make_pod(version="10")), Updated(make_pod(version="9"))],
            {"web": "10"},
            id="stale",
        ),
        pytest.param(
            [Added(make_pod(version="10")), Added(make_pod(uid="x", version="11"))],
            {"x": "11"},
            id="another UID",
        ),
        pytest.param(
            [Added(make_pod(version="10")), Added(make_pod(uid="x", version="9"))],
            {"web": "10"},
            id="an earlier pod of the same name",
        ),
        pytest.param(
            [Added(WEB), Listed(Pod, (make_pod("a"),))], {"a": "1"}, id="a listing is the truth"
        ),
        pytest.param([Added(WEB), Listed(Node, ())], {"web": "1"}, id="about its kind only"),
    ],
)
def test_observed_state(observations, known):
    state = ObservedState()
    for each in observations:
        state.observe(each)
    assert {pod.uid: pod.metadata.resource_version for pod in state.pods.values()} == known
