"""`explain`: one scheduling cycle for a pod of a cluster, with every verdict and score kept.

Lines of advice come from the plugins that rejected the pod. A line states facts about the pod and
the rejected nodes. It does not predict what a change would do: a node that rejects the pod for one
reason may have another reason after that.
"""

import copy
import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from msgspec import structs

from moorage.api import defaults, manifests
from moorage.api.config import Source
from moorage.api.config import load as load_config
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.pod_groups import group_key
from moorage.api.server_requests import DeallocateResourceClaim, DeleteResourceClaim
from moorage.core.decision import Decision
from moorage.core.observations import Added
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError, PluginError, shown
from moorage.expansion import expansion
from moorage.expansion.device_claims import with_claims
from moorage.expansion.volume_claims import with_volumes
from moorage.explaining import groups
from moorage.explaining.explanation import (
    Explanation,
    GroupExplanation,
)
from moorage.framework.cluster import Rejection
from moorage.framework.invoke import PluginMethod, guard
from moorage.framework.post_filter import PostFiltered
from moorage.framework.profile import Profile
from moorage.framework.status import Status
from moorage.nodes.info import NodeInfo

PREEMPTION = "preemption: "


def explain(
    objects: Iterable[Mapping[str, Any] | KubeObject],
    pod: str,
    config: Source = None,
    *,
    seed: int = 0,
) -> Explanation:
    """What the scheduler decides for a pod (`namespace/name`, or a bare name) and why.

    A pod that has a node already is looked at as if it were to be scheduled again.
    """
    run = DryRun(objects, config, seed=seed)
    return run.explain(find_pod(run.pods, pod))


class DryRun:
    """A cluster for which several pods are explained, each as if it were the only pending one."""

    def __init__(
        self,
        objects: Iterable[Mapping[str, Any] | KubeObject],
        config: Source = None,
        *,
        seed: int = 0,
    ) -> None:
        given = manifests.read(objects).everything
        expanded = expansion(given)
        completed = with_claims(defaults.complete(expanded.objects))
        self.objects = with_volumes(completed, given)
        # Workloads and objects that quotas and limit ranges refuse, and the refused pods of the
        # input, which no scheduler observes.
        self.refusals = expanded.refusals
        self.refused_pods = expanded.refused_pods
        self._messages = expanded.messages
        self._config = load_config(config)
        self._seed = seed
        self._scheduler: Scheduler | None = None
        # By key: why a group does not fit, None if it does. All its pods share it.
        self._groups: dict[str, GroupExplanation | None] = {}

    @classmethod
    def observed(
        cls, objects: list[KubeObject], scheduler: Scheduler, config: Source = None
    ) -> "DryRun":
        """A cluster of complete objects that a scheduler has observed already."""
        run = cls((), config)
        run.objects = objects
        run._scheduler = scheduler
        return run

    def with_config(self, config: Source) -> "DryRun":
        """The same cluster with another configuration."""
        other = copy.copy(self)
        other._config, other._scheduler = load_config(config), None
        other._groups = {}
        return other

    @property
    def pods(self) -> list[Pod]:
        """All pods, also those that workloads create, and refused ones."""
        return [*(obj for obj in self.objects if isinstance(obj, Pod)), *self.refused_pods]

    def explain(self, pod: Pod) -> Explanation:
        """What the scheduler decides for one of the pods."""
        if pod.key in self._messages:
            return Explanation(pod, refused=self._messages[pod.key])
        if pod.node_name:  # The node is considered without it.
            unbound = structs.replace(pod, spec=structs.replace(pod.spec, node_name=""))
            scheduler = self._make_scheduler(pod, unbound)
            explained = _explain(scheduler, unbound, pod.node_name)
            explained.is_node_missing = pod.node_name not in scheduler.cluster.table.row_of
            return explained
        explained = _explain(self.scheduler, pod, "")
        key = group_key(pod)
        if key and explained.gate is None and self.scheduler.groups is not None:
            if key not in self._groups:
                self._groups[key] = groups.explain(self.scheduler, key)
            _add_group(explained, self._groups[key])
        return explained

    @property
    def scheduler(self) -> Scheduler:
        """A scheduler that has observed all objects, and decides about them without effects."""
        if self._scheduler is None:
            self._scheduler = self._make_scheduler()
        return self._scheduler

    def _make_scheduler(self, pod: Pod | None = None, unbound: Pod | None = None) -> Scheduler:
        scheduler = Scheduler(self._config, seed=self._seed)
        for obj in self.objects:
            seen = obj if obj is not pod or unbound is None else unbound
            scheduler.observe(Added(seen), 0.0)
        return scheduler


def _explain(scheduler: Scheduler, pod: Pod, runs_on: str) -> Explanation:
    profile = scheduler.profiles.get(pod.spec.scheduler_name)
    if profile is None:
        profiles = ", ".join(sorted(scheduler.profiles))
        return Explanation(
            pod,
            runs_on=runs_on,
            nodes=scheduler.cluster.table.node_count,
            message=f'no profile for scheduler "{pod.spec.scheduler_name}"',
            advice=[
                f"The pod asks for it in spec.schedulerName; the profiles here are: {profiles}."
            ],
        )
    gate = profile.run_pre_enqueue(pod)
    if gate is not None:
        rejection = Rejection(gate.message, pod, [], profile.cluster)
        line = _line(profile, gate.plugin, rejection)
        return Explanation(pod, runs_on=runs_on, gate=gate, advice=[line] if line else [])
    decision = scheduler.cycle.decide(profile, pod, scheduler.templates.of(pod), 0.0)
    return of_decision(decision, runs_on)


def _add_group(explained: Explanation, group: GroupExplanation | None) -> None:
    """Say why the pod's group does not fit; then the pod stays pending, even if it would."""
    explained.group = group
    if group is None:
        return
    summary = group.summary
    first = [] if explained.picked else [f"{summary[0].upper()}{summary[1:]}."]
    explained.advice = [*first, *group.lines, *explained.advice]
    if explained.picked:
        explained.picked, explained.message = "", f"{summary}."


def find_pod(objects: Iterable[KubeObject], name: str) -> Pod:
    """The pod of that name; a bare name has to be unique, or in the namespace `default`."""
    pods = [obj for obj in objects if isinstance(obj, Pod)]
    exact = [pod for pod in pods if pod.key == name]
    found = exact or [pod for pod in pods if pod.name == name]
    if len(found) > 1:
        found = [pod for pod in found if pod.namespace == "default"] or found
    if len(found) == 1:
        return found[0]
    if found:
        keys = ", ".join(sorted(pod.key for pod in found))
        raise InputError(f"pod {name!r} is not unique: say which of {keys}")
    alike = _alike(pods, name)
    hint = f"did you mean {alike}?" if alike else "name it as namespace/name"
    raise InputError(f"no pod {name!r} among the {len(pods)} given; {hint}")


def _alike(pods: list[Pod], name: str) -> str:
    """A pod of the workload of that name, or a pod with a similar name."""
    _, _, last = name.rpartition("/")
    made = (pod.key for pod in pods if last and pod.name.startswith(f"{last}-"))
    if found := next(made, None):
        return found
    names = {pod.name: pod.key for pod in pods}
    close = difflib.get_close_matches(last, names, n=1)
    return names[close[0]] if close else ""


def of_decision(decision: Decision, runs_on: str = "") -> Explanation:
    """The explanation of a decision."""
    found = Explanation(decision.pod, runs_on=runs_on, nodes=decision.nodes, picked=decision.node)
    found.filter_plugins = [plugin.name for plugin in decision.profile.filters]
    if decision.diagnosis is not None:
        found.message = decision.diagnosis.message
        found.unschedulable_plugins = sorted(decision.diagnosis.unschedulable_plugins)
    elif not decision.status.is_success:
        found.message = decision.status.message
        found.error = decision.status
    if found.error is None:
        _add_nodes(found, decision)
    if (outcome := decision.post_filter) is not None:
        _add_post_filter(found, outcome)
        found.candidates = list(outcome.candidates)
        found.nominated = outcome.nominated or ""
        found.why_nominated = _why(outcome)
    if not found.picked:
        found.advice = _advice(decision, found.rejected) + _post_filter_advice(decision)
    if not found.unschedulable_plugins:
        found.unschedulable_plugins = sorted({s.plugin for s in found.rejected.values()} - {""})
    return found


def _add_nodes(found: Explanation, decision: Decision) -> None:
    table = decision.state.table
    for row in np.flatnonzero(table.active_rows).tolist():
        status = _verdict(decision, row)
        if status is None:
            found.feasible.append(table.name(row))
        else:
            found.rejected[table.name(row)] = status
    if decision.scored is not None:
        scores = {name: decision.scored.scores(table.row_of[name]) for name in found.feasible}
        totals = {name: int(decision.scored.totals[table.row_of[name]]) for name in found.feasible}
        top = max(totals.values())
        found.best = [name for name in found.feasible if totals[name] == top]
        # Neither plugin nor extender scores: all nodes are equal, as in kube-scheduler.
        if decision.profile.has_scores or any(scores.values()):
            found.scores, found.totals = scores, totals
    elif decision.node:
        found.best = [decision.node]
    for plugin in decision.profile.plugins():
        if (method := decision.profile.method(plugin, "explain_reservation")) is not None:
            for name in found.feasible:
                info = table.info(table.row_of[name])
                if taken := _taken(method, decision, info):
                    found.allocations.setdefault(name, []).extend(taken)


def _taken(method: PluginMethod, decision: Decision, node: NodeInfo) -> list[dict[str, Any]]:
    """What a plugin's reserve would take on a node."""
    try:
        taken = method.call(decision.state, decision.pod, node)
        if isinstance(taken, list | None) and all(isinstance(each, dict) for each in taken or ()):
            return taken or []
        raise method.returned(taken, "a list of dicts")
    except PluginError as failure:
        return [{"error": str(failure)}]


def _why(outcome: PostFiltered) -> str:
    """The explanation of a post_filter plugin."""
    why, plugin = outcome.why, outcome.status.plugin
    if callable(why):
        try:
            why = guard(plugin, f'plugin "{plugin}": why: ', why)
        except PluginError as failure:
            return str(failure)
    return why if isinstance(why, str) else shown(why)


def _add_post_filter(found: Explanation, outcome: PostFiltered) -> None:
    """The texts of post_filter plugins, with that of preemption by itself, and their requests."""
    reasons = outcome.status.reasons
    others = [reason for reason in reasons if not reason.startswith(PREEMPTION)]
    found.post_filter_message = ", ".join(others)
    found.preemption_message = ", ".join(r for r in reasons if r.startswith(PREEMPTION))
    for request in outcome.requests:
        match request:
            case DeallocateResourceClaim(name=name):
                found.deallocated = name
            case DeleteResourceClaim(name=name):
                found.deleted = name


def _verdict(decision: Decision, row: int) -> Status | None:
    """Why a row was rejected; None if it is feasible."""
    pre = decision.pre
    if pre.rejected is not None:
        return pre.rejected
    filtered = decision.filtered
    if filtered is None:
        return decision.status
    if pre.names is not None and decision.state.table.name(row) not in pre.names:
        return pre.absent
    if row in decision.rejected_beside_nominated or not filtered.fits[row]:
        return decision.verdict(row)
    return None


def _advice(decision: Decision, rejected: Mapping[str, Status]) -> list[str]:
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
    often_first = sorted(given.items(), key=lambda item: (-len(item[1].nodes), item[0]))
    return [
        f"{reason}: {line}"
        for (reason, plugin), each in often_first
        if (line := _line(decision.profile, plugin, each))
    ]


def _post_filter_advice(decision: Decision) -> list[str]:
    """The lines for the reasons of the post_filter plugin that found no way out."""
    outcome = decision.post_filter
    if outcome is None or outcome.status.is_success:
        return []
    plugin, cluster = outcome.status.plugin, decision.state.cluster
    return [
        f"{reason}: {line}"
        for reason in outcome.status.reasons
        if (line := _line(decision.profile, plugin, Rejection(reason, decision.pod, [], cluster)))
    ]


def _line(profile: Profile, name: str, rejection: Rejection) -> str:
    """What a plugin says about its rejection."""
    for plugin in profile.plugins():
        method = profile.method(plugin, "explain_rejection") if plugin.name == name else None
        if method is not None:
            try:
                said = method.call(rejection)
                return said if isinstance(said, str) else shown(said or "")
            except PluginError as failure:
                return str(failure)
    return ""
