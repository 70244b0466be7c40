"""Kept: what was found out for a template, for as long as nothing changes that it rests on.

As far as filters look no further than a node and its pods, a row is tried again only when its pods
or the promises made there have changed. Otherwise any change makes everything stale: that is what
a refusal's stamp tells.
"""

from collections.abc import Hashable, Sequence
from itertools import islice

import numpy as np

from moorage import plugin as mp
from moorage.plugins.default_preemption.budgets import Budgets
from moorage.plugins.default_preemption.crowds import Crowds
from moorage.plugins.default_preemption.trials import Rows, Trials

# Kept arrays may take about so much memory, at some 60 bytes per row and template.
KEPT_BYTES = 16 << 20
BYTES_PER_ROW = 60
FEWEST_KEPT = 16


class KeptTrials:
    """The trials of one template."""

    def __init__(self, cluster: mp.Cluster) -> None:
        self.cluster = cluster
        self.trials = Trials(cluster.table.capacity)
        self._pods = mp.Cursor(cluster.table.changes)
        self._nominations = mp.Cursor(cluster.promise_changes)
        self._stamp: Hashable = None
        self._reasons: mp.Reasons | None = None
        self._version = (0, 0)
        self._rows: Rows = np.zeros(0, dtype=np.intp)
        # A row whose result holds for one pod only, because it is promised to that very pod.
        self._own: int | None = None

    def refresh(self, stamp: Hashable, own: int | None) -> Trials:
        """Forget what does not hold any more: all of it if the stamp is another, or None."""
        pods, nominations = self._pods.changed(), self._nominations.changed()
        is_known = stamp is not None and stamp == self._stamp
        if not is_known or pods is None or nominations is None or self._is_outgrown(pods):
            self.trials = Trials(self.cluster.table.capacity)
        else:
            self.trials.forget(pods)
            self.trials.forget(nominations)
        self.trials.forget([row for row in (self._own, own) if row is not None])
        self._stamp, self._own = stamp, own
        self._pods.commit()
        self._nominations.commit()
        return self.trials

    def _is_outgrown(self, changed: Sequence[int]) -> bool:
        """Whether it is better to start with nothing, now that rows have changed."""
        if not changed:
            return False
        return self.trials.is_littered or len(self.trials.fresh) != self.cluster.table.capacity

    def potential_rows(self, refusal: mp.Refusal) -> Rows:
        """Nodes that others may leave with some effect: refused, and not for good."""
        table, reasons = self.cluster.table, refusal.reasons
        version = (0 if reasons is None else reasons.version, table.node_changes.position)
        if reasons is None or reasons is not self._reasons or version != self._version:
            rows = table.zone_order.rows()
            self._rows = rows[refusal.having(mp.Code.UNSCHEDULABLE, rows)]
            self._reasons, self._version = reasons, version
        return self._rows


class Kept:
    """Trials by template, the cluster's budgets, and its pods by importance."""

    def __init__(self) -> None:
        self._crowds: Crowds | None = None
        self._of: dict[int, KeptTrials] = {}
        self._budgets: tuple[mp.Cluster, int, Budgets] | None = None

    def trials(self, state: mp.CycleState) -> KeptTrials:
        """What is kept for the template of a pod."""
        serial = state.template.serial
        kept = self._of.pop(serial, None)
        if kept is None or kept.cluster is not state.cluster:
            kept = KeptTrials(state.cluster)
            most = max(KEPT_BYTES // (BYTES_PER_ROW * state.table.capacity), FEWEST_KEPT)
            for oldest in list(islice(self._of, max(len(self._of) - most + 1, 0))):
                del self._of[oldest]
        self._of[serial] = kept  # The latest used is the last to go.
        return kept

    def budgets(self, cluster: mp.Cluster) -> Budgets:
        """The disruption budgets as they are now."""
        version = cluster.version_of(mp.PodDisruptionBudget)
        known = self._budgets
        if known is None or known[0] is not cluster or known[1] != version:
            known = self._budgets = (cluster, version, Budgets(cluster))
        return known[2]

    def crowds(self, table: mp.NodeTable) -> Crowds:
        """The pods of all nodes, ordered by importance."""
        if self._crowds is None or not self._crowds.is_of(table):
            self._crowds = Crowds(table)
        return self._crowds
