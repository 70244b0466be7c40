"""PodComparison: our decision for a pod, the binding by the other scheduler, and why they differ.

The verdict compares both nodes by our scores, in the cluster as it was when the binding was
observed:

    same      both chose the same node
    equal     the other's node has the same total as ours
    better    the other's node has a higher total, or we had rejected the pod
    worse     the other's node has a lower total, or our filters reject it

The reason says why the nodes differ:

    tie             the totals are equal; each scheduler chooses one of the best nodes
    time            the cluster changed between the two decisions, and that explains the difference
    sampling        more nodes are feasible than kube-scheduler scores by default, so it may not
                    have scored our node
    configuration   none of these: the other scheduler has other plugins, weights or arguments

A total changes with time. The test for `time` compares the most favourable moment of the other's
node with the least favourable moment of the best node: if these overlap, there was a state between
the two decisions in which the other's node may have been the best. `reordering` has a second test.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from moorage.core import sampling
from moorage.shadow.totals import NodeTotals

SAME, EQUAL, BETTER, WORSE = VERDICTS = ("same", "equal", "better", "worse")
TIE, TIME, SAMPLING, CONFIGURATION = REASONS = ("tie", "time", "sampling", "configuration")


class PodComparison(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One pod that both schedulers decided about; totals and scores are those at the binding."""

    pod: str
    node: str  # Ours; empty if we rejected the pod.
    other_node: str
    verdict: str
    reason: str = ""
    total: int | None = None
    other_total: int | None = None
    best_total: int | None = None
    feasible: int = 0
    # The plugins whose weighted scores differ: ours minus the other's.
    plugins: dict[str, int] = {}
    # Why our filters reject the other's node, or rejected the pod.
    message: str = ""
    # Changes of nodes and of pods on nodes that were observed between the two decisions.
    changes: int = 0
    # Our decisions for other pods that were not bound yet when we decided.
    assumed: int = 0
    # From the first observation of the pod; None if it existed before the shadow started.
    seconds: float | None = None
    other_seconds: float | None = None
    # Whether the binding was observed before we decided; then we decided at the binding.
    is_late: bool = False

    @property
    def is_agreed(self) -> bool:
        """Whether we could choose the other's node in the cluster as it was at the binding."""
        best = self.best_total
        return self.verdict == SAME or (best is not None and self.other_total == best)

    @property
    def deciding_plugin(self) -> str:
        """The plugin that favours our node over the other's by the most points."""
        return max(self.plugins, key=lambda name: self.plugins[name], default="")

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def judge(
    ours: str,
    theirs: str,
    early: NodeTotals | None,
    late: NodeTotals,
    *,
    nodes: int,
    has_changed: bool,
) -> tuple[str, str]:
    """The verdict and the reason.

    `early` has the totals at our decision, `late` those at the binding.
    """
    if ours == theirs:
        return SAME, ""
    its = late.of(theirs)
    if not ours:
        return BETTER, CONFIGURATION if its is None else TIME
    if its is None:
        was_feasible = early is not None and early.of(theirs) is not None
        return WORSE, TIME if was_feasible else CONFIGURATION
    mine = late.of(ours)
    if mine is None or its > mine:
        return BETTER, TIME  # Ours was the best when we decided.
    if its == mine:
        return EQUAL, TIE
    if has_changed and early is not None and _may_have_been_best(theirs, early, late):
        return WORSE, TIME
    is_sampled = late.feasible > sampling.enough(nodes, 0)
    return WORSE, SAMPLING if is_sampled else CONFIGURATION


def _may_have_been_best(node: str, early: NodeTotals, late: NodeTotals) -> bool:
    totals = [total for each in (early, late) if (total := each.of(node)) is not None]
    return max(totals) >= min(early.top, late.top)


def differences(ours: Mapping[str, int], theirs: Mapping[str, int]) -> dict[str, int]:
    """Our scores minus the other's, per plugin, where they differ."""
    return {
        name: score - theirs.get(name, 0)
        for name, score in ours.items()
        if score != theirs.get(name, 0)
    }
