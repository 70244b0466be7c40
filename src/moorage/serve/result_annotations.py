"""Results of a scheduling cycle as pod annotations, as kube-scheduler-simulator writes them.

    prefilter-result          plugin: the only nodes to search, if one plugin names them
    prefilter-result-status   plugin: success, the reason of its rejection, or "" if it skipped
    filter-result             node: plugin: passed, or the reason; later filters did not run
    postfilter-result         nominated node: plugin: preemption victim
    score-result              node: plugin: score as the plugin returned it
    finalscore-result         node: plugin: score, normalised and multiplied by the weight
    selected-node             the node

Values are JSON, and scores are texts. They are those of the last cycle. Of a large cluster, only
the best nodes are included: the annotations of an object are limited to 256 KiB.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np

from moorage.api.config import SchedulerConfiguration
from moorage.api.pod import Pod
from moorage.core.decision import Decision
from moorage.core.journal import Journal
from moorage.core.queued_pod import QueuedPod
from moorage.core.scheduler import Scheduler
from moorage.framework.views.feasible import NO_FILTER

PREFIX = "kube-scheduler-simulator.sigs.k8s.io/"
MOST_NODES = 100

PASSED = "passed"
SUCCESS = "success"
VICTIM = "preemption victim"

Annotate = Callable[[Pod, dict[str, str]], None]


class AnnotatingScheduler(Scheduler):
    """A scheduler that passes the results of each cycle to `annotate`, before it acts on them."""

    decides_by_group = False

    def __init__(self, configuration: SchedulerConfiguration, journal: Journal) -> None:
        super().__init__(configuration, journal=journal)
        self.annotate: Annotate = lambda pod, annotations: None

    def _record(self, entry: QueuedPod, decision: Decision, now: float) -> None:
        self.annotate(decision.pod, annotations(decision))
        super()._record(entry, decision, now)

    def _reject(self, entry: QueuedPod, decision: Decision, now: float) -> None:
        self.annotate(decision.pod, annotations(decision))
        super()._reject(entry, decision, now)


def annotations(decision: Decision) -> dict[str, str]:
    """The results of a cycle by annotation."""
    rows = _rows(decision)
    results: dict[str, dict[str, Any]] = {
        "prefilter-result": _narrowed(decision),
        "prefilter-result-status": dict(_pre_filters(decision)),
        "filter-result": {_name(decision, row): _filters(decision, row) for row in rows},
        "postfilter-result": _post_filter(decision),
        "score-result": {},
        "finalscore-result": {},
    }
    scored = decision.scored
    for row in rows if scored is not None else ():
        if scored is not None and scored.totals[row] >= 0:
            final = scored.scores(row)
            name = _name(decision, row)
            results["finalscore-result"][name] = _texts(final)
            results["score-result"][name] = _texts(_raw_scores(decision, row, list(final)))
    found = {
        f"{PREFIX}{key}": msgspec.json.encode(value).decode() for key, value in results.items()
    }
    found[f"{PREFIX}selected-node"] = decision.node
    return found


def _name(decision: Decision, row: int) -> str:
    return decision.state.table.name(row)


def _texts(scores: dict[str, int]) -> dict[str, str]:
    return {plugin: str(score) for plugin, score in scores.items()}


def _rows(decision: Decision) -> list[int]:
    """The rows to include: the best first, then those that are not feasible."""
    active: list[int] = np.flatnonzero(decision.state.table.active_rows).tolist()
    if decision.filtered is None:
        return []
    if (names := decision.pre.names) is not None:
        active = [row for row in active if _name(decision, row) in names]
    if decision.scored is not None:
        totals = decision.scored.totals
        active.sort(key=lambda row: (row != decision.row, -int(totals[row])))
    return active[:MOST_NODES]


def _narrowed(decision: Decision) -> dict[str, list[str]]:
    """The nodes to which a plugin narrowed the search; what each of several named is not known."""
    pre = decision.pre
    if pre.names is None or len(pre.narrowed_by) != 1:
        return {}
    return {pre.narrowed_by[0]: sorted(pre.names)}


def _pre_filters(decision: Decision) -> Iterator[tuple[str, str]]:
    pre = decision.pre
    for plugin in decision.profile.pre_filters:
        rejects = pre.rejected is not None and pre.rejected.plugin == plugin.name
        if rejects and pre.rejected is not None:
            yield plugin.name, pre.rejected.message
            return
        yield plugin.name, "" if plugin.name in pre.skipped else SUCCESS


def _filters(decision: Decision, row: int) -> dict[str, str]:
    """The verdict of each filter that ran for a row."""
    filtered = decision.filtered
    assert filtered is not None
    found: dict[str, str] = {}
    first = filtered.first.item(row)
    for index, name in enumerate(filtered.names):
        if index == first:
            found[name] = filtered.status(row).message
            return found
        if name not in decision.pre.skipped:
            found[name] = PASSED
    beside = decision.rejected_beside_nominated.get(row)
    if beside is not None and first == NO_FILTER:
        found[beside.plugin] = beside.message
    return found


def _post_filter(decision: Decision) -> dict[str, dict[str, str]]:
    result = decision.post_filter
    if result is None or not result.nominated:
        return {}
    return {result.nominated: {result.status.plugin: VICTIM}}


def _raw_scores(decision: Decision, row: int, names: list[str]) -> dict[str, int]:
    """What each plugin returned for a row, before normalising."""
    state, pod, profile = decision.state, decision.pod, decision.profile
    by_name = {plugin.name: plugin for plugin in profile.plugins()}
    return {
        name: int(profile.require(by_name[name], "score").call(state, pod, state.table.info(row)))
        for name in names
        if name in by_name
    }
