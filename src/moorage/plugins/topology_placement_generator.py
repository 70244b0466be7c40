"""TopologyPlacementGenerator: all pods of a group on nodes with the same value of a label.

There is one placement per value of the label that the group's topology constraint names. If members
are on nodes already, only their value is left.
"""

from collections.abc import Iterable

import numpy as np

from moorage import plugin as mp

NOT_ONE_DOMAIN = "cannot determine domain for already scheduled pods: "


class TopologyPlacementGenerator:
    name = "TopologyPlacementGenerator"
    reads_kinds = ("PodGroup",)

    def attach(self, cluster: mp.Cluster) -> None:
        self._cluster = cluster

    def placement_generate(
        self, cluster: mp.Cluster, group: mp.PodGroup
    ) -> list[mp.GroupPlacement] | None:
        key = _topology_key(group)
        if key is None:
            return None
        table, members = cluster.table, cluster.members(group.key)
        if members is None:
            raise mp.PluginFailure(f"failed to get the state of pod group {group.key}")
        column = table.label(key)
        own = _own_domains(members.scheduled.values(), key, table)
        codes = column.codes
        present = np.unique(codes[table.active_rows])
        found = {column.values[code]: codes == code for code in present.tolist()}
        return [
            mp.GroupPlacement(value, rows)
            for value, rows in sorted(found.items(), key=lambda each: each[0] or "")
            if value is not None and (not own or value in own)
        ]

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.NODE_ADD: self._has_the_label,
            mp.ClusterEvent.UPDATE_NODE_LABEL: self._has_the_label,
        }

    def _has_the_label(self, pod: mp.Pod, old: mp.Node | None, new: mp.Node) -> mp.Hint:
        group = self._cluster.get(mp.PodGroup, mp.group_key(pod))
        key = None if group is None else _topology_key(group)
        if key is None:
            return mp.Hint.QUEUE
        before = None if old is None else old.labels.get(key)
        now = new.labels.get(key)
        return mp.Hint.QUEUE if now is not None and now != before else mp.Hint.QUEUE_SKIP


def _topology_key(group: mp.PodGroup) -> str | None:
    constraints = group.spec.scheduling_constraints
    return constraints.topology[0].key if constraints is not None and constraints.topology else None


def _own_domains(pods: Iterable[mp.Pod], key: str, table: mp.NodeTable) -> set[str]:
    """The value of the nodes that members are on; empty if there are none."""
    found: set[str] = set()
    for pod in pods:
        node = table.node(pod.node_name)
        if node is None:
            reason = f'getting node for pod {pod.key}: node "{pod.node_name}" not found'
            raise mp.PluginFailure(NOT_ONE_DOMAIN + reason)
        if key not in node.labels:
            raise mp.PluginFailure(NOT_ONE_DOMAIN + f"no topology domain found for pod {pod.key}")
        found.add(node.labels[key])
    if len(found) > 1:
        listed = ", ".join(sorted(found))
        reason = f"more than 1 domain found for pod group: {listed}"
        raise mp.PluginFailure(NOT_ONE_DOMAIN + reason)
    return found
