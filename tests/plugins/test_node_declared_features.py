import pytest

from moorage import plugin as mp
from moorage.api.pod import Container, ContainerRestartRule
from moorage.plugins import node_declared_features
from moorage.plugins.node_declared_features import FEATURES, MISSING, NodeDeclaredFeatures
from moorage.testing import check_plugin, make_node, make_pod, make_state, make_table, run_plugin

RESTART, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"


def restarting(action="RestartAllContainers"):
    return Container(restart_policy_rules=(ContainerRestartRule(action=action),))


USER_NAMESPACE = make_pod("mine", host_network=True, host_users=False)
RESTARTING = make_pod("mine", containers=(restarting(),))
PLAIN = make_pod("mine")


@pytest.mark.parametrize(
    ("pod", "required"),
    [
        pytest.param(PLAIN, [], id="a plain pod"),
        pytest.param(USER_NAMESPACE, [USERS], id="host network with a user namespace"),
        pytest.param(make_pod(host_network=True), [], id="host users left unsaid"),
        pytest.param(make_pod(host_network=True, host_users=True), [], id="host users"),
        pytest.param(make_pod(host_users=False), [], id="a user namespace without host network"),
        pytest.param(RESTARTING, [RESTART], id="a container restarts all others"),
        pytest.param(
            make_pod(init_containers=(restarting(),)), [RESTART], id="an init container does"
        ),
        pytest.param(
            make_pod(containers=(restarting("Restart"),)), [], id="a container restarts itself"
        ),
        pytest.param(
            make_pod(host_network=True, host_users=False, containers=(restarting(),)),
            [RESTART, USERS],
            id="both at once",
        ),
    ],
)
def test_required(pod, required):
    bits = sum(node_declared_features.BIT[feature] for feature in required)
    assert node_declared_features.required(pod) == bits
    answer = NodeDeclaredFeatures().pre_filter(make_state(pod, make_table([])), pod)
    assert answer == (mp.SUCCESS if required else mp.SKIP)


@pytest.mark.parametrize(
    ("declared", "known"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(FEATURES, FEATURES, id="everything"),
        pytest.param(["Aaa", RESTART, "Sss", USERS, "Zzz"], [RESTART, USERS], id="unknown names"),
        pytest.param([RESTART, RESTART, USERS], [RESTART, USERS], id="a name that stands twice"),
        pytest.param([USERS, RESTART], [USERS], id="unsorted: what comes too late is lost"),
        pytest.param(["Zzz", USERS], [], id="unsorted: an unknown name can cost a known one"),
    ],
)
def test_declared(declared, known):
    bits = sum(node_declared_features.BIT[feature] for feature in known)
    assert node_declared_features.declared(make_node(features=declared)) == bits


@pytest.mark.parametrize(
    ("pod", "features", "status"),
    [
        pytest.param(USER_NAMESPACE, [], MISSING, id="the node declares nothing"),
        pytest.param(USER_NAMESPACE, [RESTART], MISSING, id="the node declares something else"),
        pytest.param(USER_NAMESPACE, [RESTART, USERS], mp.SUCCESS, id="the node declares it"),
        pytest.param(PLAIN, [], mp.SUCCESS, id="nothing needed"),
    ],
)
def test_filter(pod, features, status):
    ran = run_plugin(NodeDeclaredFeatures(), pod, make_node(features=features))
    assert ran == (status, None, None)


def test_reason():
    assert mp.unresolvable("node(s) didn't match Pod's required features") == MISSING


def test_filter_needs_what_pre_filter_left():
    table = make_table([make_node()])
    info = table.info(table.row_of["node"])
    with pytest.raises(mp.PluginFailure, match='"PreFilterNodeDeclaredFeatures" from cycle-state'):
        NodeDeclaredFeatures().filter(make_state(RESTARTING, table), RESTARTING, info)


@pytest.mark.parametrize(
    ("event", "old", "new", "hint"),
    [
        pytest.param(mp.ClusterEvent.NODE_ADD, None, make_node(), mp.Hint.QUEUE, id="any new node"),
        pytest.param(
            mp.ClusterEvent.UPDATE_NODE_DECLARED_FEATURE,
            make_node(),
            make_node(features=[USERS]),
            mp.Hint.QUEUE,
            id="a node declares more",
        ),
        pytest.param(
            mp.ClusterEvent.UPDATE_NODE_DECLARED_FEATURE,
            make_node(features=[USERS]),
            make_node(features=[USERS], labels={"a": "b"}),
            mp.Hint.QUEUE_SKIP,
            id="a node declares the same",
        ),
        pytest.param(
            mp.ClusterEvent.POD_UPDATE,
            USER_NAMESPACE,
            PLAIN,
            mp.Hint.QUEUE,
            id="the pod needs less",
        ),
        pytest.param(
            mp.ClusterEvent.POD_UPDATE,
            PLAIN,
            make_pod("mine", labels={"a": "b"}),
            mp.Hint.QUEUE_SKIP,
            id="the pod needs the same",
        ),
        pytest.param(
            mp.ClusterEvent.POD_UPDATE,
            make_pod("other", host_network=True, host_users=False),
            make_pod("other"),
            mp.Hint.QUEUE_SKIP,
            id="another pod needs less",
        ),
    ],
)
def test_hints(event, old, new, hint):
    assert NodeDeclaredFeatures().events_to_register()[event](USER_NAMESPACE, old, new) is hint


def test_conforms():
    check_plugin(NodeDeclaredFeatures())
