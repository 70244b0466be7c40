"""GroupPlacements: the parts of the cluster that a whole group may be placed in, and which is best.

A placement is a mask over the rows of the table. Plugins generate them (one plugin per profile) and
score those in which the group fits.
"""

from collections.abc import Sequence
from random import Random

import numpy as np

from moorage.api.pod import Pod
from moorage.api.pod_groups import PodGroup
from moorage.errors import PluginError
from moorage.framework.cluster import Cluster
from moorage.framework.profile import Profile
from moorage.nodes.pod_groups import GroupPlacement

HIGHEST_SCORE = 100


class PlacementError(Exception):
    """A plugin failed, or an object is missing."""


class GroupPlacements:
    """See the module; `random` breaks ties."""

    def __init__(self, cluster: Cluster, random: Random) -> None:
        self._cluster = cluster
        self._random = random

    def generate(self, profile: Profile, key: str) -> list[GroupPlacement] | None:
        """The placements of a group; None stands for one with all nodes."""
        plugin = profile.placement_generator
        if plugin is None:
            return None
        group = self._group(key)
        method = profile.require(plugin, "placement_generate")
        try:
            found: list[GroupPlacement] | None = method.call(self._cluster, group)
            if found is not None and not self._are_placements(found):
                raise method.returned(found, "a list of GroupPlacements with a mask of all rows")
        except PluginError as failure:
            raise PlacementError(str(failure)) from failure
        return found

    def _are_placements(self, found: object) -> bool:
        shape = self._cluster.table.active_rows.shape
        return isinstance(found, list) and all(
            isinstance(each, GroupPlacement)
            and isinstance(each.name, str)
            and isinstance(each.rows, np.ndarray)
            and (each.rows.dtype.kind, each.rows.shape) == ("b", shape)
            for each in found
        )

    def best(
        self,
        profile: Profile,
        key: str,
        placements: Sequence[GroupPlacement],
        proposed: Sequence[Sequence[Pod]],
    ) -> int:
        """The index of the placement with the highest total; `proposed` are the pods of each."""
        group = self._group(key)
        totals = [0] * len(placements)
        for plugin, weight in profile.placement_scores:
            try:
                score = profile.require(plugin, "placement_score")
                both = zip(placements, proposed, strict=True)
                scores = [
                    score.call(self._cluster, group, placement, pods) for placement, pods in both
                ]
                if not _are_scores(scores, len(placements)):
                    raise score.returned(scores, "an integer per placement")
                normalize = profile.method(plugin, "normalize_placement_score")
                if normalize is not None:
                    scores = normalize.call(scores)
                    if not _are_scores(scores, len(placements)):
                        raise normalize.returned(scores, "a list with an integer per placement")
            except PluginError as failure:
                raise PlacementError(str(failure)) from failure
            for i, each in enumerate(scores):
                if not 0 <= each <= HIGHEST_SCORE:
                    raise PlacementError(
                        f'plugin "{plugin.name}" returns an invalid score {each}, it should in the '
                        f"range of [0, {HIGHEST_SCORE}] after normalizing"
                    )
                totals[i] += each * weight
        best = [i for i, total in enumerate(totals) if total == max(totals)]
        return best[int(self._random.random() * len(best))] if len(best) > 1 else best[0]

    def _group(self, key: str) -> PodGroup:
        group = self._cluster.get(PodGroup, key)
        if group is None:
            raise PlacementError(f"failed to get pod group {key}: not found")
        return group


def _are_scores(values: object, count: int) -> bool:
    is_list = isinstance(values, list) and len(values) == count
    return is_list and all(isinstance(each, int) for each in values)  # type: ignore[attr-defined]  # it is a list
