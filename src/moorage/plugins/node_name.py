"""NodeName: a pod that names its node runs there or nowhere."""

import numpy as np

from moorage import plugin as mp

OTHER_NODE = mp.unresolvable("node(s) didn't match the requested node name")


class NodeName:
    name = "NodeName"
    depends = mp.Depends.NODE
    reads_kinds = ()

    def reads(self, pod: mp.Pod) -> str:
        return pod.node_name

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        return mp.SUCCESS if pod.node_name in ("", node.name) else OTHER_NODE

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        wanted = pod.node_name
        fits = table.named((wanted,)) if wanted else np.ones(len(table), dtype=np.bool_)
        return mp.Verdicts(fits=fits, otherwise=OTHER_NODE)

    def events_to_register(self) -> mp.Events:
        return {mp.ClusterEvent.NODE_ADD: None}
