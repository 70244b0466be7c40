"""LiveGroupTrial: whether a pod group would fit if pods left their nodes.

The pods are removed from the live table, and put back at the end. Nothing else runs meanwhile. The
members stay assumed between two questions: after pods are put back, only the members on their nodes
are decided again. If these do not fit elsewhere, and members differ, all are decided anew.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from moorage.core.group_results import Member
from moorage.framework.status import SUCCESS, Status, unschedulable
from moorage.nodes.table import NodeTable
from moorage.nodes.usage import Placed

NO_ROOM = unschedulable("pod group is unschedulable")


class MemberTrials(Protocol):
    """Decides members without effects."""

    def try_all(self, members: Sequence[Member]) -> Status:
        """Decide members in order, and assume them on their nodes."""

    def try_one(self, member: Member) -> bool:
        """The same for one; returns whether it has a node."""

    def assume(self, member: Member) -> bool:
        """Assume a decided member on its node again; returns whether plugins still agree."""

    def withdraw(self, member: Member) -> None:
        """Undo its assumption."""


class LiveGroupTrial:
    """See the module; implements `GroupTrial`."""

    def __init__(
        self,
        table: NodeTable,
        nominated: set[str],
        members: Sequence[Member],
        trials: MemberTrials,
    ) -> None:
        self.nominated = nominated
        # The members as they were in the last trial that succeeded, and their nodes.
        self.members: list[Member] = []
        self.nodes: set[str] = set()
        self._entries = [member.entry for member in members]
        self._is_uniform = len({id(member.template) for member in members}) == 1
        self._table = table
        self._trials = trials
        self._removed: dict[str, Placed] = {}
        # Nodes to which pods were put back since then.
        self._filled: set[str] = set()

    def remove(self, placed: Iterable[Placed]) -> None:
        """Take pods away."""
        for each in placed:
            self._table.remove_pod(each.pod.node_name, each.pod.uid)
            self._removed[each.pod.uid] = each
            self._filled.discard(each.pod.node_name)

    def restore(self, placed: Iterable[Placed]) -> None:
        """Put pods back that were taken away."""
        for each in placed:
            del self._removed[each.pod.uid]
            self._table.add_pod(each.pod.node_name, each.pod, each.usage)
            self._filled.add(each.pod.node_name)

    def status(self, *, anew: bool = False) -> Status:
        """SUCCESS if the group fits now, else why not; `anew`: all members are decided again."""
        if self.members and not anew:
            if self._try_moved():
                return SUCCESS
            if self._is_uniform:
                return NO_ROOM
        self._withdraw(self.members)
        members = [Member(entry) for entry in self._entries]
        status = self._trials.try_all(members)
        if status.is_success:
            self._succeeded(members)
        else:
            self._withdraw(members)
        return status

    def _try_moved(self) -> bool:
        """Decide the members again on whose nodes pods were put back; all others stay."""
        for member in self.members:
            if member.node and member.binding is None and not self._trials.assume(member):
                self._withdraw(self.members)
                return False
        moved = [member for member in self.members if member.node in self._filled]
        self._withdraw(moved)
        fresh = [Member(member.entry) for member in moved]
        if all(self._trials.try_one(member) for member in fresh):
            by_uid = {member.entry.uid: member for member in fresh}
            self._succeeded([by_uid.get(each.entry.uid, each) for each in self.members])
            return True
        # The members that were moved return to their nodes when the pods are taken away again.
        self._withdraw(fresh)
        return False

    def _succeeded(self, members: list[Member]) -> None:
        self.members, self._filled = members, set()
        self.nodes = {member.node for member in members if member.node}

    def _withdraw(self, members: Sequence[Member]) -> None:
        for member in reversed(members):
            if member.binding is not None:
                self._trials.withdraw(member)

    def end(self) -> None:
        """Put everything back."""
        self._withdraw(self.members)
        self.restore([*self._removed.values()])
