"""PodGroupMembers: which pods of each group are known, and which of them are on nodes.

A pod names its group in `spec.schedulingGroup`; the PodGroup object need not exist. A group is
known as long as it has members.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from moorage.api.pod import Pod
from moorage.api.pod_groups import group_key
from moorage.errors import InvariantError
from moorage.nodes.interning import Mask


class GroupPlacement(NamedTuple):
    """A part of the cluster in which all pods of a group may be placed, as a mask over rows."""

    name: str
    rows: Mask


@dataclass(slots=True)
class GroupMembers:
    """The members of one group by UID; those on nodes are assumed or observed there."""

    unscheduled: dict[str, Pod] = field(default_factory=dict)
    scheduled: dict[str, Pod] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.unscheduled) + len(self.scheduled)


class PodGroupMembers:
    """The members of all groups, by `namespace/name` of the group."""

    def __init__(self) -> None:
        self._groups: dict[str, GroupMembers] = {}
        # Groups with members on nodes and members without one.
        self.divided: dict[str, None] = {}

    def get(self, key: str) -> GroupMembers | None:
        """The members of a group; None if none is known."""
        return self._groups.get(key)

    def items(self) -> list[tuple[str, GroupMembers]]:
        """All groups with their members."""
        return list(self._groups.items())

    def add(self, pod: Pod) -> None:
        """A pod without a node is observed."""
        group = self._groups.setdefault(group_key(pod), GroupMembers())
        if pod.uid not in group.scheduled:
            group.unscheduled[pod.uid] = pod
        self._changed(pod, group)

    def place(self, pod: Pod) -> None:
        """A pod is assumed or observed on a node."""
        group = self._groups.setdefault(group_key(pod), GroupMembers())
        group.unscheduled.pop(pod.uid, None)
        group.scheduled[pod.uid] = pod
        self._changed(pod, group)

    def release(self, pod: Pod) -> None:
        """A pod is not on its node after all; ignored if it is gone meanwhile, or in no group."""
        group = self._groups.get(group_key(pod))
        if group is not None and group.scheduled.pop(pod.uid, None) is not None:
            group.unscheduled[pod.uid] = pod
            self._changed(pod, group)

    def remove(self, pod: Pod) -> None:
        """A pod is gone, or has ended."""
        key = group_key(pod)
        group = self._groups.get(key)
        if group is not None:
            group.unscheduled.pop(pod.uid, None)
            group.scheduled.pop(pod.uid, None)
            self._changed(pod, group)
            if not len(group):
                del self._groups[key]

    def _changed(self, pod: Pod, group: GroupMembers) -> None:
        if group.scheduled and group.unscheduled:
            self.divided[group_key(pod)] = None
        else:
            self.divided.pop(group_key(pod), None)

    def check(self, pods: dict[str, Pod], on_nodes: set[str]) -> None:
        """Raise InvariantError if the members are not those of the known pods."""
        expected = {pod.uid for pod in pods.values() if pod.spec.scheduling_group is not None}
        found: set[str] = set()
        for key, group in self._groups.items():
            found |= group.unscheduled.keys() | group.scheduled.keys()
            if bool(group.scheduled and group.unscheduled) != (key in self.divided):
                raise InvariantError(f"pod group {key} is divided, or not")
            if not len(group):
                raise InvariantError(f"pod group {key} has no members")
            for uid in group.scheduled.keys() - on_nodes | group.unscheduled.keys() & on_nodes:
                raise InvariantError(f"pod group {key}: {uid} is counted wrongly")
        if not found <= expected:
            raise InvariantError(f"members of pod groups are not known: {sorted(found - expected)}")
