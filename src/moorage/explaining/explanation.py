"""Explanation: one decision with all its reasons, as data (`to_dict`) and as text (`str`)."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moorage.api.pod import Pod
from moorage.core.cycle import Decision
from moorage.explaining import advice
from moorage.framework.post_filter import Candidate, PostFiltered
from moorage.framework.status import Status


@dataclass(slots=True)
class Explanation:
    """What the scheduler would do with a pod, and why."""

    pod: Pod
    runs_on: str = ""
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
    # What came of asking whether others could make room, as post_filter plugins told it.
    preemption_message: str = ""
    candidates: list[Candidate] = field(default_factory=list)
    nominated: str = ""
    why_nominated: str = ""
    # What lies behind the reasons, one line each; for people, so not part of `to_dict`.
    advice: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, decision: Decision, runs_on: str = "") -> "Explanation":
        """All that a decision can tell."""
        told = cls(decision.pod, runs_on=runs_on, nodes=decision.nodes, picked=decision.node)
        if decision.diagnosis is not None:
            told.message = decision.diagnosis.message
            told.unschedulable_plugins = sorted(decision.diagnosis.unschedulable_plugins)
        elif not decision.status.is_success:
            told.message = decision.status.message
            told.error = decision.status
        if told.error is None:
            told._tell_nodes(decision)
        if decision.post_filter is not None:
            told._tell_preemption(decision.post_filter)
        if not told.picked:
            told.advice = advice.of(decision, told.rejected)
        if not told.unschedulable_plugins:
            told.unschedulable_plugins = sorted({s.plugin for s in told.rejected.values()} - {""})
        return told

    def _tell_nodes(self, decision: Decision) -> None:
        table = decision.state.table
        for row in np.flatnonzero(table.active_rows).tolist():
            status = _verdict(decision, row)
            if status is None:
                self.feasible.append(table.name(row))
            else:
                self.rejected[table.name(row)] = status
        if decision.scored is not None:
            for name in self.feasible:
                row = table.row_of[name]
                self.scores[name] = decision.scored.of(row)
                self.totals[name] = int(decision.scored.totals[row])
            top = max(self.totals.values())
            self.best = [name for name in self.feasible if self.totals[name] == top]
        elif decision.node:
            self.best = [decision.node]

    def _tell_preemption(self, answer: PostFiltered) -> None:
        self.preemption_message = answer.status.message
        self.candidates = list(answer.candidates)
        self.nominated = answer.nominated or ""
        self.why_nominated = answer.why

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data."""
        if self.gate is not None:
            return {"preEnqueue": _plain(self.gate)}
        told: dict[str, Any] = {"feasible": list(self.feasible)}
        if self.rejected:
            told["rejected"] = {node: _plain(status) for node, status in self.rejected.items()}
            told["unschedulablePlugins"] = self.unschedulable_plugins
        if self.scores:
            told["scores"] = self.scores
            told["totals"] = self.totals
        if self.best:
            told["best"] = self.best
        if self.picked:
            told["picked"] = self.picked
        if self.message:
            told["message"] = self.message
        told |= self._preemption()
        if self.error is not None:
            told["error"] = _plain(self.error)
        return told

    def _preemption(self) -> dict[str, Any]:
        told: dict[str, Any] = {}
        if self.preemption_message:
            told["preemptionMessage"] = self.preemption_message
        if self.candidates:
            told["candidates"] = {
                each.node: {
                    "victims": [victim.key for victim in each.victims],
                    "pdbViolations": each.violations,
                }
                for each in self.candidates
            }
        if self.nominated:
            told["nominated"] = self.nominated
        return told

    def __str__(self) -> str:
        from moorage.explaining.text import render

        return render(self)

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from moorage.explaining.html import render

        return render(self)


def _verdict(decision: Decision, row: int) -> Status | None:
    """Why a row was refused; None if it fits."""
    pre = decision.pre
    if pre.rejected is not None:
        return pre.rejected
    filtered = decision.filtered
    if filtered is None:
        return decision.status
    if pre.names is not None and decision.state.table.name(row) not in pre.names:
        return pre.absent
    if row in decision.overruled or not filtered.fits[row]:
        return decision.verdict(row)
    return None


def _plain(status: Status) -> dict[str, Any]:
    return {
        "code": status.code.label,
        "plugin": status.plugin,
        "reasons": list(status.reasons),
    }
