"""NodePorts: a host port can be held by one pod of a node only.

An address of 0.0.0.0 stands for all addresses. Ports of plain init containers do not count: these
containers have ended before the others start.
"""

from collections.abc import Hashable

from moorage import plugin as mp

TAKEN = mp.unschedulable("node(s) didn't have free ports for the requested pod ports")
WANTED = mp.StateKey[tuple[mp.HostPort, ...]](
    "NodePorts.wanted", missing='reading "PreFilterNodePorts" from cycleState: not found'
)


class NodePorts:
    name = "NodePorts"
    depends = mp.Depends.USAGE
    reads_kinds = ()

    def reads(self, pod: mp.Pod) -> tuple[mp.HostPort, ...]:
        return mp.requests.host_ports(pod)

    def skip_key(self, state: mp.CycleState, pod: mp.Pod) -> Hashable:
        """A pod without host ports is skipped for good."""
        return None if mp.requests.host_ports(pod) else mp.ALWAYS

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        wanted = mp.requests.host_ports(pod)
        if not wanted:
            return mp.SKIP
        state[WANTED] = wanted
        return mp.SUCCESS

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        wanted = state[WANTED]
        return TAKEN if mp.ports.conflict(wanted, node.used_ports) else mp.SUCCESS

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        wanted = state[WANTED]
        return mp.Verdicts(fits=~table.conflicting(wanted), otherwise=TAKEN)

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        wanted = mp.requests.host_ports(rejection.pod)
        ports = ", ".join(f"{port}/{protocol}" for _, protocol, port in wanted)
        holders = [
            f"{placed.pod.key} on {node.name}"
            for node in rejection.nodes
            for placed in node.placed().values()
            if mp.ports.conflict(wanted, set(placed.usage.ports))
        ]
        return f"the pod wants {ports}, held by {mp.texts.listed(holders, 60)}."

    def events_to_register(self) -> mp.Events:
        return {mp.ClusterEvent.POD_DELETE: frees_a_port, mp.ClusterEvent.NODE_ADD: None}


def frees_a_port(pod: mp.Pod, old: mp.Pod, new: None) -> mp.Hint:
    held_room = old.node_name or old.status.nominated_node_name
    wanted, freed = mp.requests.host_ports(pod), set(mp.requests.host_ports(old))
    if held_room and mp.ports.conflict(wanted, freed):
        return mp.Hint.QUEUE
    return mp.Hint.QUEUE_SKIP
