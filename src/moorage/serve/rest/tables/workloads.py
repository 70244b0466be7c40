"""Workloads: what makes pods, and budgets for taking them away."""

from typing import Any

from moorage.serve import timestamps
from moorage.serve.controllers.objects import Object
from moorage.serve.rest.tables import cells
from moorage.serve.rest.tables.cells import NONE, Column, at, number, text, wide

_TEMPLATE = (wide("Containers"), wide("Images"), wide("Selector"))
DEPLOYMENT_COLUMNS = (
    Column("Ready"),
    Column("Up-to-date", "integer"),
    Column("Available", "integer"),
    Column("Age"),
    *_TEMPLATE,
)
REPLICA_SET_COLUMNS = (
    Column("Desired", "integer"),
    Column("Current", "integer"),
    Column("Ready", "integer"),
    Column("Age"),
    *_TEMPLATE,
)
STATEFUL_SET_COLUMNS = (Column("Ready"), Column("Age"), wide("Containers"), wide("Images"))
DAEMON_SET_COLUMNS = (
    Column("Desired", "integer"),
    Column("Current", "integer"),
    Column("Ready", "integer"),
    Column("Up-to-date", "integer"),
    Column("Available", "integer"),
    Column("Node Selector"),
    Column("Age"),
    *_TEMPLATE,
)
JOB_COLUMNS = (
    Column("Status"),
    Column("Completions"),
    Column("Duration"),
    Column("Age"),
    *_TEMPLATE,
)
CRON_JOB_COLUMNS = (
    Column("Schedule"),
    Column("Timezone"),
    Column("Suspend", "boolean"),
    Column("Active", "integer"),
    Column("Last Schedule"),
    Column("Age"),
    *_TEMPLATE,
)
BUDGET_COLUMNS = (
    Column("Min Available"),
    Column("Max Unavailable"),
    Column("Allowed Disruptions", "integer"),
    Column("Age"),
)


def _age(obj: Object, now: float) -> str:
    return cells.age(at(obj, "metadata", "creationTimestamp"), now)


def _tail(obj: Object) -> list[str]:
    return [
        *cells.containers(at(obj, "spec", "template")),
        cells.selector(at(obj, "spec", "selector")),
    ]


def deployment(obj: Object, now: float) -> list[Any]:
    """A deployment's cells."""
    ready, wanted = number(obj, "status", "readyReplicas"), number(obj, "spec", "replicas")
    return [
        f"{ready}/{wanted}",
        number(obj, "status", "updatedReplicas"),
        number(obj, "status", "availableReplicas"),
        _age(obj, now),
        *_tail(obj),
    ]


def replica_set(obj: Object, now: float) -> list[Any]:
    """A replica set's cells, or a replication controller's."""
    return [
        number(obj, "spec", "replicas"),
        number(obj, "status", "replicas"),
        number(obj, "status", "readyReplicas"),
        _age(obj, now),
        *_tail(obj),
    ]


def stateful_set(obj: Object, now: float) -> list[Any]:
    """A stateful set's cells."""
    ready, wanted = number(obj, "status", "readyReplicas"), number(obj, "spec", "replicas")
    return [f"{ready}/{wanted}", _age(obj, now), *cells.containers(at(obj, "spec", "template"))]


def daemon_set(obj: Object, now: float) -> list[Any]:
    """A daemon set's cells."""
    fields = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        *(number(obj, "status", field) for field in fields),
        cells.selector(at(obj, "spec", "template", "spec", "nodeSelector")),
        _age(obj, now),
        *_tail(obj),
    ]


def job(obj: Object, now: float) -> list[Any]:
    """A job's cells."""
    succeeded, wanted = number(obj, "status", "succeeded"), at(obj, "spec", "completions")
    parallel = number(obj, "spec", "parallelism")
    completions = f"{succeeded}/{wanted}"
    if wanted is None:
        completions = f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"
    started = at(obj, "status", "startTime")
    duration = ""
    if started:
        ended = timestamps.to_seconds(at(obj, "status", "completionTime"), otherwise=now)
        duration = cells.span(ended - timestamps.to_seconds(started))
    return [_job_status(obj), completions, duration, _age(obj, now), *_tail(obj)]


def _job_status(obj: Object) -> str:
    for type_, word in (
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
    ):
        if cells.condition(obj, type_).get("status") == "True":
            return word
    return "Terminating" if at(obj, "metadata", "deletionTimestamp") else "Running"


def cron_job(obj: Object, now: float) -> list[Any]:
    """A cron job's cells."""
    last = at(obj, "status", "lastScheduleTime")
    return [
        text(obj, "spec", "schedule"),
        text(obj, "spec", "timeZone", otherwise=NONE),
        at(obj, "spec", "suspend") is True,
        len(cells.maps(obj, "status", "active")),
        cells.age(last, now) if last else NONE,
        _age(obj, now),
        *cells.containers(at(obj, "spec", "jobTemplate", "spec", "template")),
        NONE,
    ]


def budget(obj: Object, now: float) -> list[Any]:
    """A disruption budget's cells."""
    return [
        text(obj, "spec", "minAvailable", otherwise="N/A"),
        text(obj, "spec", "maxUnavailable", otherwise="N/A"),
        number(obj, "status", "disruptionsAllowed"),
        _age(obj, now),
    ]
