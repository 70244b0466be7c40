"""Profiles of small test plugins, and the results of one pod's scheduling cycle."""

from dataclasses import dataclass

import pytest

from moorage.api import config
from moorage.core import profiles as built_profiles
from moorage.core.cycle import filter_failure
from moorage.framework.cluster import Cluster
from moorage.framework.profile import Profile
from moorage.framework.registry import Registry
from moorage.framework.state import CycleState
from moorage.framework.views.feasible import FeasibleRows
from moorage.framework.views.pre_filters import PreFiltered
from moorage.framework.views.totals import Scored
from moorage.nodes.template import Templates
from moorage.testing import make_node, make_table


@dataclass
class CycleResults:
    """What the plugins returned for one pod."""

    profile: Profile
    state: CycleState
    pre: PreFiltered
    filtered: FeasibleRows | None = None
    scored: Scored | None = None

    def name(self, row):
        return self.profile.cluster.table.name(row)

    @property
    def fits(self):
        return [self.name(row) for row in self.filtered.fits.nonzero()[0]]

    @property
    def failure(self):
        rows = self.profile.cluster.table.active.nonzero()[0]
        return filter_failure(self.filtered, rows)

    def why_not(self, node):
        return self.filtered.status(self.profile.cluster.table.row_of[node])

    def scores(self, node):
        return self.scored.parts.of(self.profile.cluster.table.row_of[node])

    def total(self, node):
        return int(self.scored.totals[self.profile.cluster.table.row_of[node]])


class Workbench:
    """Profiles of a configuration over one cluster."""

    def __init__(self, plugins, nodes=("n1", "n2", "n3"), pods=(), profiles=None, **points):
        registry = Registry({plugin.name: plugin for plugin in plugins})
        names = ["PrioritySort", "DefaultBinder", *(plugin.name for plugin in plugins)]
        multi_point = {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in names]}
        default = {"plugins": {"multiPoint": multi_point, **points}}
        settings = {
            "apiVersion": config.API_VERSION,
            "kind": config.KIND,
            "profiles": profiles or [default],
        }
        made = [make_node(node) if isinstance(node, str) else node for node in nodes]
        self.cluster = Cluster(make_table(made, pods))
        self.templates = Templates()
        self.profiles = built_profiles.build(config.load(settings), registry, self.cluster)

    @property
    def profile(self):
        return next(iter(self.profiles.values()))

    def run(self, pod):
        """Run pre_filter, filter and score for a pod, until one of them rejects it."""
        chosen = self.profiles[pod.spec.scheduler_name]
        template = self.templates.of(pod)
        views = chosen.views.of(template)
        state = CycleState.of(self.cluster, template, below=views.state)
        results = CycleResults(chosen, state, views.pre_filter(state, pod))
        if results.pre.rejected is None:
            results.filtered = views.filter(state, pod, results.pre)
            if results.filtered.fits.any():
                results.scored = views.score(state, pod, results.filtered.fits)
        return results


@pytest.fixture
def bench():
    return Workbench
