"""Victims of a pod group, on all nodes together.

A unit is what is evicted together: the pods of a group with `disruptionMode: PodGroup`, or a single
pod. First all units of lower priority are removed. If the group does not fit even then, preemption
does not help. Otherwise they are put back one by one as long as the group still fits: first those
that a PodDisruptionBudget protects, then the others, the most important first.

A unit on nodes that the group does not use is put back without a trial, and for others only the
pods on their nodes are tried again. One trial of all at the end shows whether that was right; it is
not if pods repel each other across nodes. Then all units are put back one by one with such a trial.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from moorage import plugin as mp
from moorage.plugins.default_preemption import sorted_pods
from moorage.plugins.disruption_budgets import Budgets

PREEMPTED = "DisruptionTarget"

CONSTRAINED = mp.unschedulable(
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)
NEVER = mp.unschedulable("not eligible due to preemptionPolicy=Never.")
NO_VICTIMS = mp.unresolvable("No preemption victims found for incoming preemptor")


@dataclass(frozen=True, slots=True)
class VictimUnit:
    """Pods that are evicted together."""

    placed: tuple[mp.Placed, ...]
    priority: int

    @property
    def importance(self) -> tuple[int, bool, int, float]:
        """The most important has the smallest key."""
        first = self.placed[0].pod
        in_group = first.spec.scheduling_group is not None
        started = sorted_pods.started_at(first)
        return -self.priority, not in_group, -len(self.placed) if in_group else 0, started

    @property
    def nodes(self) -> set[str]:
        return {each.pod.node_name for each in self.placed}


def victims_of(
    cluster: mp.Cluster,
    group: mp.PodGroup,
    pods: Sequence[mp.Pod],
    trial: mp.GroupTrial,
    budgets: Budgets,
) -> tuple[mp.Pod, ...] | mp.Status:
    """The pods to evict for a group; none if victims of the group are still terminating."""
    if group.spec.scheduling_constraints is not None:
        return CONSTRAINED
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return NEVER
    units = [each for each in _units(cluster) if each.priority < group.priority]
    if any(_is_leaving(each, trial.nominated) for each in units):
        return ()
    if not units:
        return NO_VICTIMS
    for unit in units:
        trial.remove(unit.placed)
    status = trial.status()
    if not status.is_success:
        return status
    units.sort(key=lambda unit: unit.importance)
    violated = budgets.violated_by(each for unit in units for each in unit.placed)
    units.sort(key=lambda unit: not any(each.pod.uid in violated for each in unit.placed))
    victims = _reprieve(units, trial, trusts_nodes=True)
    if not trial.status(anew=True).is_success:
        for unit in units:
            if unit not in victims:
                trial.remove(unit.placed)
        victims = _reprieve(units, trial, trusts_nodes=False)
    return tuple(each.pod for unit in victims for each in unit.placed)


def _reprieve(
    units: Sequence[VictimUnit], trial: mp.GroupTrial, *, trusts_nodes: bool
) -> list[VictimUnit]:
    """Put units back as long as the group fits; returns those that have to go."""
    victims = []
    for unit in units:
        trial.restore(unit.placed)
        if trusts_nodes and not unit.nodes & trial.nodes:
            continue
        if not trial.status(anew=not trusts_nodes).is_success:
            trial.remove(unit.placed)
            victims.append(unit)
    return victims


def _units(cluster: mp.Cluster) -> list[VictimUnit]:
    """All pods on nodes, those of some groups together."""
    table = cluster.table
    alone: list[VictimUnit] = []
    together: dict[str, tuple[mp.PodGroup, list[mp.Placed]]] = {}
    for row in table.active_rows.nonzero()[0].tolist():
        for placed in table.placed[row].values():
            pod = placed.pod
            group = None
            if pod.spec.scheduling_group is not None:
                group = cluster.get(mp.PodGroup, mp.group_key(pod))
            if group is not None and group.spec.disruption_mode == "PodGroup":
                together.setdefault(group.key, (group, []))[1].append(placed)
            else:
                alone.append(VictimUnit((placed,), pod.priority))
    joined = [VictimUnit(tuple(placed), group.priority) for group, placed in together.values()]
    return alone + joined


def _is_leaving(unit: VictimUnit, nominated: set[str]) -> bool:
    """Whether a unit was preempted and has not left a nominated node yet."""
    return any(
        each.pod.is_terminating
        and each.pod.node_name in nominated
        and each.pod.condition(PREEMPTED) is not None
        for each in unit.placed
    )
