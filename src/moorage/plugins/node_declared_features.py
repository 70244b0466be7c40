"""NodeDeclaredFeatures: a pod that uses a new kubelet feature goes where it is declared.

Nodes list their features in `status.declaredFeatures`; what a pod needs follows from its spec.
Versions and labels of nodes are not looked at.
"""

import numpy as np

from moorage import plugin as mp

MISSING = mp.unresolvable("node(s) didn't match Pod's required features")
REQUIRED = mp.StateKey[int](
    "NodeDeclaredFeatures.required",
    missing='error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found',
)

# All features that nodes may declare, in name order; a set of them is an integer of bits.
FEATURES = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
)
BIT = {feature: 1 << i for i, feature in enumerate(FEATURES)}


def declared(node: mp.Node) -> int:
    """The known features of a node.

    Kubernetes walks both lists side by side and trusts the node to have sorted its own: a name
    that comes too late in it is lost. Lists are short, so the walk is a search from where the
    last one ended.
    """
    bits = reached = 0
    for name in node.status.declared_features:
        while reached < len(FEATURES) and FEATURES[reached] < name:
            reached += 1
        if reached < len(FEATURES) and FEATURES[reached] == name:
            bits |= BIT[name]
            reached += 1
    return bits


def required(pod: mp.Pod) -> int:
    """The features without which the pod would not run as it says."""
    spec = pod.spec
    bits = 0
    if any(
        rule.action == "RestartAllContainers"
        for container in (*spec.containers, *spec.init_containers)
        for rule in container.restart_policy_rules
    ):
        bits |= BIT["RestartAllContainersOnContainerExits"]
    if spec.host_network and spec.host_users is False:
        bits |= BIT["UserNamespacesHostNetworkSupport"]
    return bits


DECLARED = mp.Column("declared features", np.int64, read=declared)


class NodeDeclaredFeatures:
    name = "NodeDeclaredFeatures"
    columns = (DECLARED,)
    depends = mp.Depends.NODE
    reads_kinds = ()

    def reads(self, pod: mp.Pod) -> int:
        return required(pod)

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        state[REQUIRED] = required(pod)
        return mp.SUCCESS if state[REQUIRED] else mp.SKIP

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        lacking = state[REQUIRED] & ~node[DECLARED]
        return MISSING if lacking else mp.SUCCESS

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        lacking = state[REQUIRED] & ~table[DECLARED]
        return mp.Verdicts(fits=lacking == 0, otherwise=MISSING)

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.NODE_ADD: declares_otherwise,
            mp.ClusterEvent.UPDATE_NODE_DECLARED_FEATURE: declares_otherwise,
            mp.ClusterEvent.POD_UPDATE: needs_otherwise,
        }


def declares_otherwise(pod: mp.Pod, old: mp.Node | None, new: mp.Node) -> mp.Hint:
    changed = old is None or old.status.declared_features != new.status.declared_features
    return mp.Hint.QUEUE if changed else mp.Hint.QUEUE_SKIP


def needs_otherwise(pod: mp.Pod, old: mp.Pod, new: mp.Pod) -> mp.Hint:
    changed = new.uid == pod.uid and required(old) != required(new)
    return mp.Hint.QUEUE if changed else mp.Hint.QUEUE_SKIP
