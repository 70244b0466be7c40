"""Which changes could make room for a pod that NodeResourcesFit refused.

A node is asked whether it could hold the pod if it were empty. Ignored resources are not ignored
here: a quirk of kube-scheduler, which may leave such a pod waiting for another change.
"""

from moorage import plugin as mp


def after_pod_deleted(pod: mp.Pod, old: mp.Pod, new: None) -> mp.Hint:
    """Room is freed by a pod that had some, or had been promised some."""
    return _queue_if(bool(old.node_name or old.status.nominated_node_name))


def after_scale_down(pod: mp.Pod, old: mp.Pod, new: mp.Pod) -> mp.Hint:
    """The pod itself asks for less, or another one leaves some of what it asks for."""
    if new.uid == pod.uid:
        return mp.Hint.QUEUE
    return _queue_if(bool(new.node_name) and _frees_some(pod, old, new))


def after_node_change(pod: mp.Pod, old: mp.Node | None, new: mp.Node) -> mp.Hint:
    """The node is large enough and, if it was there before, offers more of what matters."""
    wanted = {name: amount for name, amount in mp.requests.filter_request(pod).items() if amount}
    offered = mp.requests.allocatable(new)
    if offered.get("pods", 0) < 1 or any(wanted[name] > offered.get(name, 0) for name in wanted):
        return mp.Hint.QUEUE_SKIP
    if old is None:
        return mp.Hint.QUEUE
    before = mp.requests.allocatable(old)
    return _queue_if(any(offered.get(name, 0) > before.get(name, 0) for name in ("pods", *wanted)))


def _frees_some(pod: mp.Pod, old: mp.Pod, new: mp.Pod) -> bool:
    before, after = mp.requests.requested(old), mp.requests.requested(new)
    return any(
        before.get(name, 0) > after.get(name, 0)
        for name, amount in mp.requests.requested(pod).items()
        if amount
    )


def _queue_if(helps: bool) -> mp.Hint:  # noqa: FBT001 - the answer itself, not an option
    return mp.Hint.QUEUE if helps else mp.Hint.QUEUE_SKIP
