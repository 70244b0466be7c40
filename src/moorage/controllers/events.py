"""The Events that controllers emit about their writes, in Kubernetes' words."""

from typing import NamedTuple

from moorage.controllers import deployment, job, objects, replica_set, stateful_set
from moorage.controllers.objects import Object
from moorage.controllers.writes import Create, Delete, Update


class NewEvent(NamedTuple):
    """An Event to emit about an object."""

    type: str
    reason: str
    text: str
    reporter: str
    action: str = ""
    is_combined: bool = False  # one Event for all of the same reason, with the latest text


def event_for_write(
    owner: Object,
    write: Create | Update | Delete,
    written: Object,
    before: Object | None,
) -> NewEvent | None:
    """The Event of a write that succeeded; `before` is the object that it replaced."""
    kind, name = objects.kind_of(owner), objects.name(written)
    if kind == deployment.KIND:
        return None if isinstance(write, Delete) else _scaling_event(owner, written, before)
    if isinstance(write, Update):
        return _job_event(written, before) if objects.kind_of(written) == job.KIND else None
    verb = "Create" if isinstance(write, Create) else "Delete"
    parent = objects.name(owner)
    match objects.kind_of(written):
        case "Pod" if kind == stateful_set.KIND:
            text = f"{verb} Pod {name} in StatefulSet {parent} successful"
        case "Pod":
            text = f"{verb}d pod: {name}"
        case job.KIND if kind != job.KIND:  # The time to live of a Job ends without an Event.
            text = f"{verb}d job {name}"
        case stateful_set.CLAIM:
            pod = f"{parent}-{name.rpartition('-')[2]}"
            text = f"{verb} Claim {name} Pod {pod} in StatefulSet {parent} success"
        case _:
            return None
    return NewEvent("Normal", f"Successful{verb}", text, reporter(owner))


def creation_failed(owner: Object, refused: Object, error: str) -> NewEvent:
    """The Event of an object that a workload could not create."""
    kind, parent, name = objects.kind_of(owner), objects.name(owner), objects.name(refused)
    what = "Error creating"
    if kind == stateful_set.KIND:
        subject = f"Pod {name}"
        if objects.kind_of(refused) == stateful_set.CLAIM:
            subject = f"Claim {name} for Pod {parent}-{name.rpartition('-')[2]}"
        what = f"create {subject} in StatefulSet {parent} failed error"
    elif kind == "batch/CronJob":
        what = "Error creating job"
    return NewEvent("Warning", "FailedCreate", f"{what}: {error}", reporter(owner))


def reporter(owner: Object) -> str:
    """The name of the controller that reports."""
    kind = owner["kind"]
    return f"{'replication' if kind == 'ReplicationController' else kind.lower()}-controller"


def _scaling_event(owner: Object, written: Object, before: Object | None) -> NewEvent | None:
    if objects.kind_of(written) not in replica_set.KINDS:
        return None
    was = 0 if before is None else objects.replicas(before)
    size = objects.replicas(written)
    if was == size:
        return None
    way = "up" if size > was else "down"
    text = f"Scaled {way} replica set {objects.name(written)} from {was} to {size}"
    return NewEvent("Normal", "ScalingReplicaSet", text, reporter(owner))


def _job_event(written: Object, before: Object | None) -> NewEvent | None:
    suspended = [
        each is not None and objects.is_condition_true(each, "Suspended")
        for each in (before, written)
    ]
    if suspended[0] != suspended[1]:
        what = "Suspended" if suspended[1] else "Resumed"
        return NewEvent("Normal", what, f"Job {what.lower()}", reporter(written))
    if not job.is_finished(written) or (before is not None and job.is_finished(before)):
        return None
    failure = objects.condition(written, "Failed")
    if failure.get("status") == "True":
        return NewEvent("Warning", failure["reason"], failure["message"], reporter(written))
    return NewEvent("Normal", "Completed", "Job completed", reporter(written))
