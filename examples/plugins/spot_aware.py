"""SpotAware: cheap nodes that may be taken away at any time, for pods that can bear it.

A node says so with the label `example.com/capacity: spot`. Pods labelled `tier: stateful` keep off
such nodes; all others prefer them.
"""

from moorage import plugin as mp

LABEL, SPOT = "example.com/capacity", "spot"
MAY_VANISH = mp.unresolvable("node(s) may be taken away at any time")


class SpotAware:
    name = "SpotAware"

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        stays = pod.labels.get("tier") == "stateful"
        return MAY_VANISH if stays and node.labels.get(LABEL) == SPOT else mp.SUCCESS

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        return 100 if node.labels.get(LABEL) == SPOT else 0
