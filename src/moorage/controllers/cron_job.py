"""CronJob: create a Job at each scheduled time, and delete the oldest finished ones.

the time has come       create a Job, named after the minute
still active            Forbid: skip this time; Replace: delete the active Job first
missed                  only the latest missed time counts, and only within
                        `startingDeadlineSeconds`
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from moorage.api import cron, timestamps
from moorage.api.cron import CronSchedule
from moorage.controllers import job as jobs
from moorage.controllers import objects, writes
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.writes import BACKGROUND, Create, Delete, Report, RequeueAt, Write

KIND = "batch/CronJob"
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
REPORTER = "cronjob-controller"
# How far to look for the next time of a schedule that names a rare day, such as February 29.
_MAX_DAYS = 366 * 8
_HISTORY = {"Complete": ("successfulJobsHistoryLimit", 3), "Failed": ("failedJobsHistoryLimit", 1)}


def reconcile(cron_job: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Create the Job whose time has come, clean up finished ones, and set the status."""
    if objects.is_terminating(cron_job):
        return
    owned = index.controlled(jobs.KIND, objects.uid(cron_job))
    yield from _clean_up(cron_job, owned)
    yield from _ended_jobs(cron_job, owned)
    unfinished = [each for each in owned if not jobs.is_finished(each)]
    active = [each for each in unfinished if SCHEDULED_AT in objects.annotations(each)]
    for each in unfinished:
        if SCHEDULED_AT not in objects.annotations(each):  # kubectl create job --from=cronjob/...
            text = f"Saw a job that the controller did not create or forgot: {objects.name(each)}"
            yield Report(cron_job, "UnexpectedJob", text, REPORTER)
    changed = cron_job
    if not objects.spec(cron_job).get("suspend"):
        times = schedule(cron_job)
        if times is None:
            text = f"unparseable schedule: {objects.spec(cron_job).get('schedule')!r}"
            yield Report(cron_job, "UnparseableSchedule", text, REPORTER)
        else:
            due = times.latest(_earliest(cron_job, now), now)
            if due is not None:
                started, new = _start(cron_job, due, times.zone, active, owned, now)
                yield from new
                if started and not index.failure(cron_job):
                    at = timestamps.to_text(due)
                    changed = objects.with_status(changed, lastScheduleTime=at)
            if (following := times.after(now)) is not None:
                yield RequeueAt(following)
            else:
                why = "time difference between two schedules is less than 1 second"
                text = f"invalid schedule: {objects.spec(cron_job).get('schedule')} : {why}"
                yield Report(cron_job, "InvalidSchedule", text, REPORTER)
    done = [each for each in owned if objects.is_condition_true(each, "Complete")]
    ends = [str(objects.status(each).get("completionTime") or "") for each in done]
    changed = objects.with_status(
        changed,
        active=[_reference(each) for each in active] or None,
        lastSuccessfulTime=max(ends, default="")
        or objects.status(cron_job).get("lastSuccessfulTime"),
    )
    yield from writes.update_if_changed(cron_job, changed)


def _ended_jobs(cron_job: Object, owned: Sequence[Object]) -> Iterator[Write]:
    """Report Jobs that were active and have ended, or are gone."""
    known = {objects.uid(each): each for each in owned}
    for each in objects.status(cron_job).get("active") or ():
        job = known.get(each.get("uid", ""))
        if job is None:
            text = f"Active job went missing: {each.get('name')}"
            yield Report(cron_job, "MissingJob", text, REPORTER, "Normal")
        elif jobs.is_finished(job):
            end = "Complete" if objects.is_condition_true(job, "Complete") else "Failed"
            text = f"Saw completed job: {each.get('name')}, condition: {end}"
            yield Report(cron_job, "SawCompletedJob", text, REPORTER, "Normal")


def _start(
    cron_job: Object,
    due: float,
    zone: tzinfo,
    active: Sequence[Object],
    owned: Sequence[Object],
    now: float,
) -> tuple[bool, list[Write]]:
    """Whether the scheduled time is over, and the writes for its Job."""
    spec = objects.spec(cron_job)
    deadline = spec.get("startingDeadlineSeconds")
    at = datetime.fromtimestamp(due, zone)
    if deadline is not None and due + int(deadline) < now:
        text = f"Missed scheduled time to start a job: {at.strftime('%a, %d %b %Y %H:%M:%S %z')}"
        return False, [Report(cron_job, "MissSchedule", text, REPORTER)]
    new = job_for(cron_job, due, zone)
    if any(objects.name(each) == objects.name(new) for each in owned):
        return True, []
    policy = spec.get("concurrencyPolicy")
    if policy == "Forbid" and active:
        return False, []
    deleted: list[Write] = []
    if policy == "Replace":
        deleted = [Delete(each, propagation=BACKGROUND) for each in active]
    return True, [*deleted, Create(new)]


def job_for(cron_job: Object, due: float, zone: tzinfo = UTC) -> Object:
    """The Job of a scheduled time."""
    template = objects.spec(cron_job).get("jobTemplate") or {}
    meta = template.get("metadata") or {}
    at = datetime.fromtimestamp(due, zone).isoformat().replace("+00:00", "Z")
    metadata = {
        "name": f"{objects.name(cron_job)}-{int(due // 60)}",
        "namespace": objects.namespace(cron_job),
        "annotations": {**(meta.get("annotations") or {}), SCHEDULED_AT: at},
        "ownerReferences": [objects.controller_reference(cron_job)],
    }
    if labels := meta.get("labels"):
        metadata["labels"] = labels
    spec = template.get("spec") or {}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _earliest(cron_job: Object, now: float) -> float:
    """Times before this one are no longer looked at."""
    created = timestamps.to_seconds(cron_job["metadata"].get("creationTimestamp"), now)
    last = timestamps.to_seconds(objects.status(cron_job).get("lastScheduleTime"), created)
    deadline = objects.spec(cron_job).get("startingDeadlineSeconds")
    return last if deadline is None else max(last, now - int(deadline))


def _clean_up(cron_job: Object, owned: Sequence[Object]) -> Iterator[Write]:
    """Delete the oldest finished Jobs beyond the history limits."""
    for condition, (field, default) in _HISTORY.items():
        kept = objects.spec_number(cron_job, field, default)
        ended = [each for each in owned if objects.is_condition_true(each, condition)]
        ended.sort(
            key=lambda each: (objects.status(each).get("startTime") or "", each["metadata"]["name"])
        )
        for each in ended[: max(0, len(ended) - kept)]:
            if not objects.is_terminating(each):
                yield Delete(each, propagation=BACKGROUND)


def _reference(job: Object) -> Object:
    version = job["metadata"].get("resourceVersion", "")
    place = {"namespace": objects.namespace(job), "resourceVersion": version}
    return {**objects.reference(job), **place}


# Times -----------------------------------------------------------------------------------------


class Times:
    """The times of a schedule in a time zone; `every` is the interval of `@every`."""

    def __init__(self, schedule: CronSchedule | None, every: float, zone: tzinfo) -> None:
        self._schedule = schedule
        self._every = every
        self.zone = zone

    @property
    def runs(self) -> bool:
        """Whether the schedule names a day that exists."""
        return self._schedule is None or self._schedule.names_a_day

    def after(self, now: float) -> float | None:
        """The first time after `now`; None if there is none for years."""
        if self._schedule is None:
            return (now // self._every + 1) * self._every
        day = datetime.fromtimestamp(now, self.zone)
        for _ in range(_MAX_DAYS):
            at = next((each for each in self._of_day(day) if each > now), None)
            if at is not None:
                return at
            day = day.replace(hour=12) + timedelta(days=1)
        return None

    def latest(self, earliest: float, now: float) -> float | None:
        """The last time after `earliest` that has come."""
        if self._schedule is None:
            found = now // self._every * self._every
            return found if found > earliest else None
        day = datetime.fromtimestamp(now, self.zone)
        for _ in range(_MAX_DAYS):
            at = max((each for each in self._of_day(day) if each <= now), default=None)
            if at is not None:
                return at if at > earliest else None
            day = day.replace(hour=12) - timedelta(days=1)
            if day.timestamp() < earliest - 2 * 86400.0:
                return None
        return None

    def _of_day(self, day: datetime) -> list[float]:
        schedule = self._schedule
        assert schedule is not None
        weekday = day.isoweekday() % 7
        by_day, by_weekday = day.day in schedule.days, weekday in schedule.weekdays
        either = not schedule.any_day and not schedule.any_weekday
        matches = (by_day or by_weekday) if either else (by_day and by_weekday)
        if not matches or day.month not in schedule.months:
            return []
        return [
            day.replace(hour=hour, minute=minute, second=0, microsecond=0).timestamp()
            for hour in sorted(schedule.hours)
            for minute in sorted(schedule.minutes)
        ]


def schedule(cron_job: Object) -> Times | None:
    """The times of a CronJob; None if its schedule or its time zone cannot be read."""
    spec = objects.spec(cron_job)
    text = str(spec.get("schedule") or "")
    zone_name = str(spec.get("timeZone") or "UTC")
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone_name = text.partition(" ")[0].partition("=")[2]
    try:
        zone = UTC if zone_name == "UTC" else ZoneInfo(zone_name)
        parsed = cron.parse(text)
    except (ValueError, ZoneInfoNotFoundError):
        return None
    if parsed is not None:
        return Times(parsed, 0.0, zone)
    return Times(None, max(1.0, _seconds(text.partition("@every ")[2])), zone)


_PARTS = re.compile(r"([0-9.]+)(ms|h|m|s)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def _seconds(duration: str) -> float:
    """A duration such as 1h30m."""
    return sum(float(number) * _UNITS[unit] for number, unit in _PARTS.findall(duration))
