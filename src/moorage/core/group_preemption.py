"""LiveGroupTrial: whether a pod group would fit if pods left their nodes.

The pods are removed from the live table, and put back at the end. Nothing else runs meanwhile. The
members stay assumed between two questions: after pods are put back, only the members on their nodes
are decided again. If these do not fit elsewhere, and members differ, all are decided anew.
"""

from collections.abc import Iterable, Sequence

from moorage.core.group_results import Member
from moorage.core.member_trials import UNSCHEDULABLE, MemberTrials
from moorage.framework.status import SUCCESS, Status, unschedulable
from moorage.nodes.table import NodeTable
from moorage.nodes.usage import Placed

NO_ROOM = unschedulable(UNSCHEDULABLE)


class LiveGroupTrial:
    """See the module; implements `GroupTrial`."""

    def __init__(
        self,
        table: NodeTable,
        nominated: set[str],
        members: Sequence[Member],
        trials: MemberTrials,
        now: float,
    ) -> None:
        self.nominated = nominated
        # The members as they were in the last trial that succeeded, and their nodes.
        self.members: list[Member] = []
        self.nodes: set[str] = set()
        self._entries = [member.entry for member in members]
        self._is_uniform = len({id(member.template) for member in members}) == 1
        self._table = table
        self._trials = trials
        self._now = now
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
        self._trials.withdraw(self.members, self._now)
        members = [Member(entry) for entry in self._entries]
        status = self._trials.try_all(members, self._now).status
        if status.is_success:
            self._succeeded(members)
        else:
            self._trials.withdraw(members, self._now)
        return status

    def _try_moved(self) -> bool:
        """Decide the members again on whose nodes pods were put back; all others stay."""
        for member in self.members:
            if member.node and member.binding is None:
                self._trials.assume(member, self._now)
                if member.binding is None:
                    self._trials.withdraw(self.members, self._now)
                    return False
        moved = [member for member in self.members if member.node in self._filled]
        self._trials.withdraw(moved, self._now)
        fresh = [Member(member.entry) for member in moved]
        if all(self._has_node(member) for member in fresh):
            by_uid = {member.entry.uid: member for member in fresh}
            self._succeeded([by_uid.get(each.entry.uid, each) for each in self.members])
            return True
        # The members that were moved return to their nodes when the pods are taken away again.
        self._trials.withdraw(fresh, self._now)
        return False

    def _has_node(self, member: Member) -> bool:
        self._trials.try_one(member, self._now)
        return member.binding is not None

    def _succeeded(self, members: list[Member]) -> None:
        self.members, self._filled = members, set()
        self.nodes = {member.node for member in members if member.node}

    def end(self) -> None:
        """Put everything back."""
        self._trials.withdraw(self.members, self._now)
        self.restore([*self._removed.values()])
