"""DefaultBinder: ask the API server to bind the pod to its node."""

from moorage import plugin as mp


class DefaultBinder:
    name = "DefaultBinder"
    reads_kinds = ()

    def bind(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> mp.Request:
        # By UID, so that a pod made anew under the same name is never bound by mistake.
        return mp.BindPod(mp.PodRef.of(pod), node)
