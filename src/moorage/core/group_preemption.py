"""LiveGroupTrial: whether a pod group would fit if pods left their nodes.

The pods are removed from the live table, and put back at the end. Nothing else runs meanwhile.
"""

from collections.abc import Callable, Iterable

from moorage.framework.status import Status
from moorage.nodes.table import NodeTable
from moorage.nodes.usage import Placed

# Tries all members without effects; returns the status of the group, and the nodes by UID.
TryMembers = Callable[[], tuple[Status, dict[str, str]]]


class LiveGroupTrial:
    """See the module; implements `GroupTrial`."""

    def __init__(self, table: NodeTable, nominated: set[str], try_members: TryMembers) -> None:
        self.nodes: set[str] = set()
        self.nominated = nominated
        # The nodes of the members in the last trial that succeeded, by UID.
        self.members: dict[str, str] = {}
        self._table = table
        self._try_members = try_members
        self._removed: dict[str, Placed] = {}

    def remove(self, placed: Iterable[Placed]) -> None:
        """Take pods away."""
        for each in placed:
            self._table.remove_pod(each.pod.node_name, each.pod.uid)
            self._removed[each.pod.uid] = each

    def restore(self, placed: Iterable[Placed]) -> None:
        """Put pods back that were taken away."""
        for each in placed:
            del self._removed[each.pod.uid]
            self._table.add_pod(each.pod.node_name, each.pod, each.usage)

    def status(self) -> Status:
        """SUCCESS if the group fits now, else why not."""
        status, nodes = self._try_members()
        if status.is_success:
            self.members, self.nodes = nodes, set(nodes.values())
        return status

    def end(self) -> None:
        """Put everything back."""
        self.restore([*self._removed.values()])
