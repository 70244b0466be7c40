"""Pods whose node is gone: after a while they are taken for lost, and removed.

Kubernetes calls this the garbage collector of pods. The wait gives a node that was deleted by
mistake the time to come back.
"""

from collections.abc import Iterator

from moorage.serve.controllers import objects, pods
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.view import View
from moorage.serve.controllers.writes import Delete, Update, Write

QUARANTINE_SECONDS = 40.0


def is_lost(pod: Object, view: View) -> bool:
    """Whether a pod is on a node that is not there."""
    node = pods.node_name(pod)
    return bool(node) and view.get("Node", "", node) is None


def collect(pod: Object) -> Iterator[Write]:
    """The end of a pod that nobody can end any more."""
    if not pods.is_ended(pod):
        yield Update(
            objects.with_status(
                pod,
                phase="Failed",
                reason="NodeLost",
                message="PodGC: node no longer exists",
            )
        )
    yield Delete(pod, grace_seconds=0)
