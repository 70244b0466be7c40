"""Plans from traces in the style of Google's cluster data of 2011 and 2019.

    machine events   time, machine_id, event_type, platform_id, cpus, memory
    task events      time, missing_info, job_id, task_index, machine_id, event_type, user,
                     scheduling_class, priority, cpu_request, memory_request, disk_space_request,
                     different_machines

Files of 2011 have no head and exactly these columns; with a head they may be in any order, and only
those that are used are required. Times are microseconds. Amounts are shares of the largest machine,
whose size is a parameter. The machines at time 0 are the nodes; later machine events are ignored. A
task runs from SCHEDULE to its end; without a SCHEDULE it runs from SUBMIT; without an end it stays.
"""

from pathlib import Path

from moorage.api import quantity
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.errors import InputError
from moorage.scenarios import trace_rows
from moorage.scenarios.plan import Arrival, ScenarioPlan, TraceArrivals
from moorage.scenarios.trace_rows import CsvRow

MACHINES = ("time", "machine_id", "event_type", "platform_id", "cpus", "memory")
TASKS = (
    "time",
    "missing_info",
    "job_id",
    "task_index",
    "machine_id",
    "event_type",
    "user",
    "scheduling_class",
    "priority",
    "cpu_request",
    "memory_request",
    "disk_space_request",
    "different_machines",
)
MACHINE_NEEDED = ("time", "machine_id", "event_type", "cpus", "memory")
TASK_NEEDED = ("time", "job_id", "task_index", "event_type", "cpu_request", "memory_request")
SUBMIT, SCHEDULE = "0", "1"
ENDS = ("2", "3", "4", "5", "6")  # evicted, failed, finished, killed, lost
NAMES = {"SUBMIT": "0", "SCHEDULE": "1", "EVICT": "2", "FAIL": "3", "FINISH": "4", "KILL": "5"}
NAMES |= {"LOST": "6", "ADD": "0", "REMOVE": "1", "UPDATE": "2"}
SECOND = 1_000_000
PLATFORM = "moorage.dev/platform"


class _Size:
    """The size of the largest machine, for which 1.0 stands."""

    def __init__(self, cpu: str, memory: str) -> None:
        try:
            self.milli_cpu, self.bytes = quantity.milli(cpu), quantity.value(memory)
        except ValueError as error:
            raise InputError(f"the largest machine: {error}") from None

    def amounts(self, cpu: float, memory: float) -> dict[str, quantity.Quantity]:
        return {"cpu": f"{round(cpu * self.milli_cpu)}m", "memory": str(round(memory * self.bytes))}


def load(
    tasks: str | Path,
    machines: str | Path | None = None,
    *,
    seed: int = 0,
    cpu: str = "64",
    memory: str = "256Gi",
) -> ScenarioPlan:
    """The plan of a trace; without machines the nodes have to come from elsewhere."""
    size = _Size(cpu, memory)
    objects = _nodes(machines, size) if machines else []
    arrivals = _arrivals(tasks, size)
    if not arrivals:
        raise InputError(f"{tasks}: no task is ever submitted")
    return ScenarioPlan.of_trace(tasks, TraceArrivals("task", tuple(arrivals)), objects, seed)


def _nodes(path: str | Path, size: _Size) -> list[KubeObject]:
    rows = trace_rows.read(path, MACHINE_NEEDED, MACHINES)
    return [_node(row, size) for row in rows if _event(row) == "0" and row.number("time") == 0]


def _node(row: CsvRow, size: _Size) -> KubeObject:
    platform = row.text("platform_id")[:63].strip("-_.=/+")
    offered = size.amounts(row.amount("cpus", 0), row.amount("memory", 0))
    labels = {PLATFORM: platform} if row.text("platform_id") else {}
    return trace_rows.make_node(f"machine-{row.text('machine_id')}", offered, labels)


def _arrivals(path: str | Path, size: _Size) -> list[Arrival]:
    submitted: dict[tuple[str, str], CsvRow] = {}
    started: dict[tuple[str, str], float] = {}
    templates: dict[tuple[float, float, int], Pod] = {}
    found: list[Arrival] = []
    rows = trace_rows.read(path, TASK_NEEDED, TASKS)
    for row in sorted(rows, key=lambda row: row.number("time")):
        task, event = (row.text("job_id"), row.text("task_index")), _event(row)
        if event == SUBMIT:
            submitted[task] = row
        elif event == SCHEDULE:
            started[task] = row.number("time")
        elif event in ENDS and task in submitted:
            submit = submitted.pop(task)
            since = started.pop(task, submit.number("time"))
            seconds = (row.number("time") - since) / SECOND
            found.append(_arrival(submit, seconds, size, templates))
    found += [_arrival(row, None, size, templates) for row in submitted.values()]
    return sorted(found, key=lambda arrival: arrival.at)


def _arrival(
    row: CsvRow, seconds: float | None, size: _Size, templates: dict[tuple[float, float, int], Pod]
) -> Arrival:
    cpu, memory = row.amount("cpu_request", 0), row.amount("memory_request", 0)
    shape = (cpu, memory, int(row.amount("priority", 0)))
    if shape not in templates:
        requested = size.amounts(cpu, memory)
        templates[shape] = trace_rows.make_template("task", requested, priority=shape[2])
    name = f"task-{row.text('job_id')}-{row.text('task_index')}"
    at = row.number("time") / SECOND
    return Arrival(at, templates[shape], seconds, replace=True, name=name)


def _event(row: CsvRow) -> str:
    """An event's number; traces of 2019 write names."""
    text = row.text("event_type")
    return NAMES.get(text.upper(), text)
