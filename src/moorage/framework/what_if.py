"""What if: filters asked again with pods added to a node, or taken away from it.

Works on a copy of the node and of the cycle's state, so that nothing needs to be put back.
"""

from typing import TYPE_CHECKING

from moorage.api.pod import Pod
from moorage.errors import PluginError
from moorage.framework import calls
from moorage.framework.sheet import PreFiltered
from moorage.framework.state import CycleState
from moorage.framework.status import SUCCESS, Status, error
from moorage.nodes.usage import Placed

if TYPE_CHECKING:
    from moorage.framework.profile import Profile


class WhatIf:
    """One pod's question about one node."""

    def __init__(
        self, profile: "Profile", state: CycleState, pod: Pod, pre: PreFiltered, row: int
    ) -> None:
        self._profile = profile
        self._pod = pod
        self._skipped = pre.skipped
        self._state = state.clone()
        self.node = state.table.info(row).copy()

    def add(self, other: Placed) -> None:
        """Suppose that a pod were there."""
        self.node.add(other.pod, other.usage)
        self._tell("add_pod", "AddPod", other)

    def remove(self, other: Placed) -> None:
        """Suppose that a pod were gone."""
        self.node.remove(other.pod)
        self._tell("remove_pod", "RemovePod", other)

    def _tell(self, method: str, name: str, other: Placed) -> None:
        for plugin in self._profile.pre_filters:
            if plugin.name in self._skipped or not hasattr(plugin, method):
                continue
            try:
                getattr(plugin, method)(self._state, self._pod, other, self.node)
            except Exception as trouble:  # A plugin may raise anything.
                text = (
                    f'running {name} on PreFilter plugin "{plugin.name}": '
                    f"{calls.describe(trouble)}"
                )
                raise PluginError(plugin.name, text) from trouble

    def status(self) -> Status:
        """The first refusal, or SUCCESS."""
        for plugin in self._profile.filters:
            if plugin.name in self._skipped:
                continue
            try:
                status: Status = plugin.filter(self._state, self._pod, self.node)
            except Exception as trouble:  # As above.
                text = f'running "{plugin.name}" filter plugin: {calls.describe(trouble)}'
                return error(text, plugin.name)
            if not status.is_success:
                return status.by(plugin.name)
        return SUCCESS
