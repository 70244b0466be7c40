"""PodGroupPodsCount: prefer the placement that takes most pods of the group."""

from collections.abc import Sequence

from moorage import plugin as mp

BEST = 100


class PodGroupPodsCount:
    name = "PodGroupPodsCount"
    reads_kinds = ()

    def placement_score(
        self,
        cluster: mp.Cluster,
        group: mp.PodGroup,
        placement: mp.GroupPlacement,
        pods: Sequence[mp.Pod],
    ) -> int:
        members = cluster.members(group.key)
        return len(pods) + (0 if members is None else len(members.scheduled))

    def normalize_placement_score(self, scores: list[int]) -> list[int]:
        most = max(scores)
        if most == 0:
            text = "no pods from pod group are assigned to any of the candidate placements"
            raise mp.PluginFailure(text)
        return [score * BEST // most for score in scores]
