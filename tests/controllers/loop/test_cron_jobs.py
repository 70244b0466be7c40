"""CronJobs: Jobs at scheduled times, concurrency policies, deadlines and history."""

import pytest

from moorage.api import timestamps
from moorage.controllers import cron_job

from .conftest import NOON
from .test_workloads import job, names

MINUTE = 60.0


def cron(schedule="*/1 * * * *", run_seconds="10", **fields):
    return {"spec": {"schedule": schedule, "jobTemplate": job(run_seconds), **fields}}


def jobs(world):
    return [each for each in world.all("Job") if "deletionTimestamp" not in each["metadata"]]


@pytest.fixture
def minutes(world):
    """A world at the beginning of a minute."""
    world.run(-NOON % MINUTE)
    world.nodes(2)
    return world


def test_a_job_each_minute_named_after_it(minutes):
    minutes.create("CronJob", "tick", **cron())
    minutes.run(2 * MINUTE + 30)
    first = int(minutes.now // MINUTE) - 1
    assert names(jobs(minutes)) == [f"tick-{first}", f"tick-{first + 1}"]
    (owner,) = jobs(minutes)[0]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CronJob", "tick", True)
    status = minutes.get("CronJob", "tick")["status"]
    assert timestamps.to_seconds(status["lastScheduleTime"]) == (first + 1) * MINUTE
    assert "active" not in status
    assert "lastSuccessfulTime" in status


@pytest.mark.parametrize(
    ("policy", "count", "active"),
    [
        pytest.param("Allow", 3, 3, id="allow"),
        pytest.param("Forbid", 1, 1, id="forbid"),
        pytest.param("Replace", 1, 1, id="replace"),
    ],
)
def test_concurrency_policy(minutes, policy, count, active):
    minutes.create("CronJob", "tick", **cron(run_seconds="500", concurrencyPolicy=policy))
    minutes.run(3 * MINUTE + 30)
    assert len(jobs(minutes)) == count
    assert len(minutes.get("CronJob", "tick")["status"]["active"]) == active
    newest = policy != "Forbid"
    assert f"tick-{int(minutes.now // MINUTE)}" in names(jobs(minutes)) or not newest


def test_suspended(minutes):
    minutes.create("CronJob", "tick", **cron(suspend=True))
    minutes.run(3 * MINUTE)
    assert jobs(minutes) == []
    minutes.change("CronJob", "tick", suspend=False)
    minutes.run(1)
    assert len(jobs(minutes)) == 1  # Only the latest of the missed times.


def test_missed_beyond_the_deadline(minutes):
    fields = cron("0 * * * *", suspend=True, startingDeadlineSeconds=20)
    minutes.create("CronJob", "tick", **fields)
    minutes.run(-minutes.now % 3600 + 60)
    minutes.change("CronJob", "tick", suspend=False)
    minutes.run(1)
    assert jobs(minutes) == []


def test_history(minutes):
    limits = {"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0}
    minutes.create("CronJob", "tick", **cron(**limits))
    minutes.run(4 * MINUTE + 30)
    assert names(jobs(minutes)) == [f"tick-{int(minutes.now // MINUTE)}"]


@pytest.mark.parametrize(
    ("schedule", "zone", "now", "expected"),
    [
        pytest.param("30 4 * * *", None, "2026-03-01T05:00:00Z", "2026-03-02T04:30:00Z", id="day"),
        pytest.param("0 0 29 2 *", None, "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z",
                     id="leap day"),
        pytest.param("0 9 * * MON", None, "2026-03-01T00:00:00Z", "2026-03-02T09:00:00Z",
                     id="weekday"),
        pytest.param("0 0 13 * FRI", None, "2026-03-07T00:00:00Z", "2026-03-13T00:00:00Z",
                     id="either day"),
        pytest.param("0 12 * * *", "Europe/Paris", "2026-07-01T00:00:00Z", "2026-07-01T10:00:00Z",
                     id="time zone"),
        pytest.param("@hourly", None, "2026-03-01T05:10:00Z", "2026-03-01T06:00:00Z", id="hourly"),
        pytest.param("@every 1h30m", None, "2026-03-01T00:00:00Z", "2026-03-01T01:30:00Z",
                     id="interval"),
    ],
)  # fmt: skip
def test_next_time(schedule, zone, now, expected):
    fields = {"schedule": schedule, **({"timeZone": zone} if zone else {})}
    times = cron_job.schedule({"metadata": {}, "spec": fields})
    assert timestamps.to_text(times.after(timestamps.to_seconds(now))) == expected


@pytest.mark.parametrize(
    ("schedule", "runs"),
    [
        pytest.param("0 0 30 2 *", False, id="30 February"),
        pytest.param("0 0 31 4,6,9,11 *", False, id="31st of short months"),
        pytest.param("0 0 29 2 *", True, id="leap day"),
        pytest.param("0 0 31 2,3 *", True, id="31st of one of two months"),
        pytest.param("0 0 30 2 MON", True, id="either day"),
        pytest.param("@every 1h", True, id="interval"),
    ],
)
def test_a_schedule_without_a_day_never_runs(schedule, runs):
    times = cron_job.schedule({"metadata": {}, "spec": {"schedule": schedule}})
    assert times.runs is runs
    assert (times.after(NOON) is not None) is runs


def test_a_schedule_without_a_day_is_reported(minutes):
    minutes.create("CronJob", "never", **cron("0 0 30 2 *"))
    minutes.run(3 * MINUTE)
    assert jobs(minutes) == []
    (event,) = minutes.all("Event")
    text = (
        "invalid schedule: 0 0 30 2 * : time difference between two schedules is less than 1 second"
    )
    assert (event["reason"], event["message"]) == ("InvalidSchedule", text)


def test_ends_of_jobs_are_reported(minutes):
    minutes.create("CronJob", "tick", **cron(run_seconds="20", suspend=False))
    minutes.run(MINUTE + 10)
    minutes.delete("Job", names(jobs(minutes))[0])
    minutes.run(MINUTE + 50)
    reasons = {each["reason"] for each in minutes.all("Event")}
    assert {"SuccessfulCreate", "MissingJob", "SawCompletedJob"} <= reasons


def test_a_job_that_a_client_made_is_not_active(minutes):
    made = minutes.create("CronJob", "tick", **cron(suspend=True))["metadata"]
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "controller": True}
    owner |= {"name": made["name"], "uid": made["uid"]}
    minutes.create("Job", "manual", metadata={"ownerReferences": [owner]}, **job("100"))
    minutes.run(5)
    assert "active" not in minutes.get("CronJob", "tick")["status"]
    (event,) = [each for each in minutes.all("Event") if each["reason"] == "UnexpectedJob"]
    text = "Saw a job that the controller did not create or forgot: manual"
    assert (event["type"], event["message"]) == ("Warning", text)
