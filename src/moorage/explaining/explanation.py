"""Explanation: one decision with all its reasons, as data.

`to_dict` is the JSON form. `text`, `html`, the terminal tables of `moorage explain` and the HTML
report render the same properties and compute nothing themselves.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from moorage.api import texts
from moorage.api.pod import Pod
from moorage.framework.post_filter import Candidate
from moorage.framework.status import Status


class Ranking(NamedTuple):
    """The feasible nodes, best first, and the plugins whose scores differ between them."""

    nodes: list[str]
    plugins: list[str]
    # Plugins with the same score for every node, which decide nothing.
    equal: dict[str, int]

    def shown(self, most: int | None) -> list[str]:
        """The first nodes, or all if there is no limit."""
        return self.nodes if most is None else self.nodes[:most]


class RejectionGroup(NamedTuple):
    """Nodes that the same plugin rejected for the same reason."""

    reason: str
    plugin: str
    nodes: list[str]


class FunnelStep(NamedTuple):
    """A plugin that rejected nodes, and how many nodes are left after it."""

    plugin: str
    rejected: int
    left: int


class MoreNodes(NamedTuple):
    """How many more nodes like a node would be enough."""

    nodes: int
    like: str

    def __str__(self) -> str:
        return f"{texts.count(self.nodes, 'more node')} like {self.like} would be enough"


class PlacementExplanation(NamedTuple):
    """How many members of a group fit into a part of the cluster, and why the others do not."""

    name: str
    fit: int
    # Reasons with the number of members that have each.
    reasons: dict[str, int]
    # If room is all that is missing.
    more_nodes: MoreNodes | None = None

    def to_dict(self) -> dict[str, Any]:
        """The placement as plain data."""
        more = {} if self.more_nodes is None else {"moreNodes": self.more_nodes._asdict()}
        return {"name": self.name, "fit": self.fit, "reasons": self.reasons, **more}


@dataclass(frozen=True, slots=True)
class GroupExplanation:
    """Why the group of a pod does not fit."""

    key: str
    needed: int
    scheduled: int
    tried: int
    placements: list[PlacementExplanation]
    error: str = ""

    @property
    def summary(self) -> str:
        """The group in one sentence, without the final full stop."""
        if self.error:
            return f"its group {self.key} cannot be placed: {self.error}"
        best = max((each.fit for each in self.placements), default=0)
        there = f", {self.scheduled} on nodes already" if self.scheduled else ""
        more = " in one placement" if len(self.placements) > 1 else ""
        return (
            f"its group {self.key} needs {texts.count(self.needed, 'pod')}{there}, and at most "
            f"{best} of {texts.count(self.tried, 'pending member')} fit{more}"
        )

    @property
    def lines(self) -> list[str]:
        """A sentence per placement, the one with most members first."""
        found = []
        for each in sorted(self.placements, key=lambda each: -each.fit):
            where = f"{each.name}: " if each.name else ""
            text = f"{where}{each.fit} of {texts.count(self.tried, 'member')} fit"
            for reason, count in each.reasons.items():
                text += f"; for {count}: {reason.rstrip('.')}"
            if each.more_nodes is not None:
                text += f"; {each.more_nodes}"
            found.append(f"{text}.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data."""
        return {
            "name": self.key,
            "minCount": self.needed,
            "scheduled": self.scheduled,
            "pending": self.tried,
            "placements": [each.to_dict() for each in self.placements],
            **({"error": self.error} if self.error else {}),
        }


@dataclass(slots=True, repr=False)
class Explanation:
    """What the scheduler would do with a pod, and why."""

    pod: Pod
    runs_on: str = ""
    # Whether that node is missing: spec.nodeName, or a dump, names one that is not there.
    is_node_missing: bool = False
    # The message of an API server that does not create the pod.
    refused: str = ""
    gate: Status | None = None
    error: Status | None = None
    nodes: int = 0
    picked: str = ""
    feasible: list[str] = field(default_factory=list)
    rejected: dict[str, Status] = field(default_factory=dict)
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    best: list[str] = field(default_factory=list)
    message: str = ""
    unschedulable_plugins: list[str] = field(default_factory=list)
    # What would be reserved on each feasible node: the devices of claims.
    allocations: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    # The outcome of post_filter: what plugins before preemption add, and preemption.
    post_filter_message: str = ""
    deallocated: str = ""
    deleted: str = ""
    preemption_message: str = ""
    candidates: list[Candidate] = field(default_factory=list)
    nominated: str = ""
    why_nominated: str = ""
    # Where how many members of the pod's group fit, if that is less than it needs.
    group: "GroupExplanation | None" = None
    # The filter plugins in the order in which they run.
    filter_plugins: list[str] = field(default_factory=list)
    # Details behind the reasons, one line each; for people, so not part of `to_dict`.
    advice: list[str] = field(default_factory=list)

    @property
    def scored(self) -> list[str]:
        """The feasible nodes that have a total score."""
        return [name for name in self.feasible if self.totals.get(name, -1) >= 0]

    @property
    def runner_up(self) -> str:
        """The best scored node other than the picked one."""
        others = (name for name in self.scored if name != self.picked)
        return max(others, key=lambda name: self.totals[name])

    @property
    def deciding_plugin(self) -> str:
        """The plugin that favours the picked node over the runner-up by the most points, if any."""
        ours, theirs = self.scores[self.picked], self.scores[self.runner_up]
        leads = {plugin: score - theirs.get(plugin, 0) for plugin, score in ours.items()}
        plugin = max(leads, key=lambda name: leads[name], default="")
        return plugin if plugin and leads[plugin] > 0 else ""

    @property
    def ranking(self) -> Ranking:
        """The feasible nodes, best first."""
        scored = self.scored
        if not scored:
            return Ranking(self.feasible, [], {})
        # Sorting is stable: nodes with the same total stay in the order of the cluster.
        nodes = sorted(scored, key=lambda name: (-self.totals[name], name != self.picked))
        plugins = list(self.scores[nodes[0]])
        given = {plugin: {self.scores[name][plugin] for name in nodes} for plugin in plugins}
        equal = {plugin: min(given[plugin]) for plugin in plugins if len(given[plugin]) == 1}
        return Ranking(nodes, [plugin for plugin in plugins if plugin not in equal], equal)

    def score_rows(self, ranking: Ranking, most: int) -> list[list[str | int]]:
        """Node, total and the scores of the ranking's plugins, for its first nodes."""
        return [
            [name, self.totals[name], *(self.scores[name][each] for each in ranking.plugins)]
            for name in ranking.shown(most)
        ]

    @property
    def rejection_groups(self) -> list[RejectionGroup]:
        """The rejected nodes by reason, the most frequent reason first."""
        nodes: dict[tuple[str, str], list[str]] = {}
        for name, status in self.rejected.items():
            nodes.setdefault((status.message, status.plugin), []).append(name)
        found = [RejectionGroup(*key, names) for key, names in nodes.items()]
        return sorted(found, key=lambda group: (-len(group.nodes), group.reason))

    @property
    def funnel(self) -> list[FunnelStep]:
        """The plugins that rejected nodes, in the order in which they run.

        A node counts for the first plugin that rejected it. The plugin of nodes that `pre_filter`
        excluded may be unknown; its name is empty then.
        """
        counts = Counter(status.plugin for status in self.rejected.values())
        order = {name: index for index, name in enumerate(self.filter_plugins)}
        steps, left = [], len(self.rejected) + len(self.feasible)
        for plugin in sorted(counts, key=lambda name: order.get(name, -1)):
            left -= counts[plugin]
            steps.append(FunnelStep(plugin, counts[plugin], left))
        return steps

    @property
    def preemption_options(self) -> list[Candidate]:
        """Every node on which preemption would help, the nominated one first."""
        return sorted(self.candidates, key=lambda each: each.node != self.nominated)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data."""
        if self.refused:
            return {"refused": self.refused}
        if self.gate is not None:
            return {"preEnqueue": _status(self.gate)}
        plain: dict[str, Any] = {"feasible": list(self.feasible)}
        if self.is_node_missing:
            plain["missingNode"] = self.runs_on
        if self.rejected:
            plain["rejected"] = {node: _status(status) for node, status in self.rejected.items()}
            plain["unschedulablePlugins"] = self.unschedulable_plugins
        candidates = {
            each.node: {
                "victims": [victim.key for victim in each.victims],
                "pdbViolations": each.violations,
            }
            for each in self.candidates
        }
        optional = {
            "scores": self.scores,
            "totals": self.totals if self.scores else None,
            "best": self.best,
            "picked": self.picked,
            "message": self.message,
            "allocations": self.allocations,
            "postFilter": self.post_filter_message,
            # Either way the claim gives its devices back.
            "deallocated": self.deallocated or self.deleted,
            "deleted": self.deleted,
            "preemptionMessage": self.preemption_message,
            "candidates": candidates,
            "nominated": self.nominated,
            "podGroup": self.group and self.group.to_dict(),
        }
        plain |= {name: value for name, value in optional.items() if value}
        if self.error is not None:
            plain["error"] = self.error.message
        return plain

    def __repr__(self) -> str:
        outcome = self.refused or self.message or "gated"
        if self.picked:
            outcome = f"picked {self.picked}"
        return f"<Explanation of {self.pod.key}: {outcome}>"

    def __str__(self) -> str:
        from moorage.explaining import text

        return text.render(self)

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from moorage.explaining import html

        return html.render(self)


def _status(status: Status) -> dict[str, Any]:
    return {"code": status.code.label, "plugin": status.plugin, "reasons": list(status.reasons)}
