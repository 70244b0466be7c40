"""The kubelets of all nodes, as far as pods notice them: pods start, run, succeed and end.

Decisions only: given a pod and its node, what happens to it now, and when to look again.

    bound, its volumes are there            Running and Ready after START_SECONDS
    moorage.dev/run-seconds is over         Succeeded
    being deleted                           gone after moorage.dev/stop-seconds (a second if it
                                            does not say), but never later than its grace period
    its node's kubelet does not work        nothing
"""

import math
from collections.abc import Iterator

from moorage.serve import heartbeats, times
from moorage.serve.controllers import objects, pods
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.writes import Again, Delete, Update, Write

RUN_SECONDS = "moorage.dev/run-seconds"
STOP_SECONDS = "moorage.dev/stop-seconds"
EXIT_CODE = "moorage.dev/exit-code"

START_SECONDS = 0.5
USUAL_STOP_SECONDS = 1.0
CONDITIONS = ("Initialized", "Ready", "ContainersReady", "PodScheduled")


def of_pod(
    pod: Object, node: Object | None, bound_at: float, now: float, *, volumes_ready: bool
) -> Iterator[Write]:
    """What becomes of a pod on its node; `bound_at` is when its kubelet first heard of it."""
    if node is None or heartbeats.health(node) == heartbeats.STOPPED:
        return
    if objects.is_terminating(pod):
        yield from _ending(pod, now)
    elif pods.is_ended(pod) or heartbeats.health(node) == heartbeats.NOT_READY:
        return
    elif pods.phase(pod) != "Running" or not pods.is_ready(pod):
        if not volumes_ready:
            return
        at = bound_at + START_SECONDS
        yield Update(running(pod, node, now)) if at <= now else Again(at)
    else:
        yield from _running_to_an_end(pod, now)


def seconds(obj: Object, annotation: str) -> float | None:
    """A time span that an annotation states; one that cannot be read counts as unsaid."""
    try:
        said = float(objects.annotations(obj)[annotation])
    except (KeyError, ValueError):
        return None
    return said if 0 <= said < math.inf else None


def _ending(pod: Object, now: float) -> Iterator[Write]:
    grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
    # The deletion timestamp is when the grace period ends.
    asked_at = times.seconds(pod["metadata"].get("deletionTimestamp"), now) - grace
    own = seconds(pod, STOP_SECONDS)
    stops_in = min(float(grace), USUAL_STOP_SECONDS if own is None else own)
    if asked_at + stops_in > now and not pods.is_ended(pod):
        yield Again(asked_at + stops_in)
        return
    if objects.finalizers(pod) and not pods.is_ended(pod):
        yield Update(ended(pod, "Failed", 143, now))  # Somebody waits to see how it ended.
    yield Delete(pod, grace_seconds=0)


def _running_to_an_end(pod: Object, now: float) -> Iterator[Write]:
    span = seconds(pod, RUN_SECONDS)
    if span is None:
        return
    at = times.seconds(objects.status(pod).get("startTime"), now) + span
    if at > now:
        yield Again(at)
        return
    code = objects.annotations(pod).get(EXIT_CODE, "0")
    failed = code.isdecimal() and int(code) != 0
    yield Update(ended(pod, "Failed" if failed else "Succeeded", int(code) if failed else 0, now))


def running(pod: Object, node: Object, now: float) -> Object:
    """The pod with all its containers up."""
    at = times.text(now)
    for type_ in CONDITIONS:
        pod = objects.with_condition(pod, at, type=type_, status="True")
    # What the scheduler once said about the pod has been overtaken.
    conditions = [
        {k: v for k, v in each.items() if k not in ("reason", "message")}
        if each["type"] in CONDITIONS
        else each
        for each in objects.status(pod)["conditions"]
    ]
    started = {"running": {"startedAt": at}}
    statuses = [
        _container_status(each, started, ready=True)
        for each in objects.spec(pod).get("containers") or ()
    ]
    address = pod_address(objects.uid(pod))
    return objects.with_status(
        pod,
        phase="Running",
        conditions=conditions,
        hostIP=heartbeats.address(node),
        hostIPs=[{"ip": heartbeats.address(node)}],
        podIP=address,
        podIPs=[{"ip": address}],
        startTime=objects.status(pod).get("startTime") or at,
        containerStatuses=statuses,
        qosClass=objects.status(pod).get("qosClass"),
    )


def ended(pod: Object, phase: str, code: int, now: float) -> Object:
    """The pod with all its containers ended."""
    at = times.text(now)
    reason = "Completed" if phase == "Succeeded" else "Error"
    for type_ in ("Ready", "ContainersReady"):
        told = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        pod = objects.with_condition(pod, at, type=type_, status="False", reason=told)
    state = {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "startedAt": objects.status(pod).get("startTime") or at,
            "finishedAt": at,
        }
    }
    statuses = [
        _container_status(each, state, ready=False)
        for each in objects.spec(pod).get("containers") or ()
    ]
    return objects.with_status(pod, phase=phase, containerStatuses=statuses)


def _container_status(container: Object, state: Object, *, ready: bool) -> Object:
    return {
        "name": container.get("name", ""),
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "state": state,
    }


def pod_address(uid: str) -> str:
    """An address that looks like one; nothing listens there."""
    number = objects.uid_number(uid) % (256 * 256)
    return f"10.244.{number >> 8}.{number & 255}"
