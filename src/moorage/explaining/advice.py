"""Details behind a rejection, one line per reason, from the plugins that gave the reasons.

A line states facts about the pod and the rejected nodes. It does not predict what a change would
do: a node that rejects the pod for one reason may have another reason after that.
"""

from collections.abc import Mapping

from moorage.api.pod import Pod
from moorage.core.cycle import Decision
from moorage.errors import PluginError
from moorage.framework.declarations import Rejection
from moorage.framework.profile import Profile
from moorage.framework.status import Status


def of(decision: Decision, rejected: Mapping[str, Status]) -> list[str]:
    """The lines for rejected nodes; the reason of most nodes comes first."""
    cluster, pre = decision.state.cluster, decision.pre
    table = cluster.table
    if not table.node_count:
        return ["There is no node among the objects that were given."]
    # Nodes that a plugin excluded with `only_nodes` have a status that is not signed.
    excluded_by = pre.narrowed_by[0] if len(pre.narrowed_by) == 1 else ""
    given: dict[tuple[str, str], Rejection] = {}
    for name, status in rejected.items():
        plugin = status.plugin
        if not plugin and status in (pre.rejected, pre.absent):
            plugin = excluded_by
        for reason in dict.fromkeys(status.reasons):
            known = given.setdefault((reason, plugin), Rejection(reason, decision.pod, [], cluster))
            known.nodes.append(table.info(table.row_of[name]))
    lines = []
    for (reason, plugin), each in sorted(given.items(), key=lambda i: (-len(i[1].nodes), i[0])):
        line = _explain(decision.profile, plugin, each)
        if line:
            lines.append(f"{reason}: {line}")
    return lines


def of_gate(profile: Profile, pod: Pod, gate: Status) -> list[str]:
    """What a gated pod waits for."""
    rejection = Rejection(gate.message, pod, [], profile.cluster)
    line = _explain(profile, gate.plugin, rejection)
    return [line] if line else []


def _explain(profile: Profile, name: str, rejection: Rejection) -> str:
    for plugin in profile.plugins():
        method = profile.method(plugin, "explain_rejection") if plugin.name == name else None
        if method is not None:
            try:
                return str(method(rejection) or "")
            except PluginError as failure:
                return str(failure)
    return ""
