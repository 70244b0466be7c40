"""What each step of a pod costs: opcodes of CPython and microseconds, without the steps within it.

    .venv/bin/python tools/step_cost.py basic
    .venv/bin/python tools/step_cost.py zone-spread --nodes 5000

Opcodes are counted while a few hundred pods are scheduled; they do not depend on the machine. The
time is taken in runs of its own, in which every step reads the clock when it begins and ends; what
that takes is measured with a function that does nothing, and left out.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter_ns
from types import FrameType
from typing import Any

from moorage import garbage
from moorage.bench.measuring import NODES, Size
from moorage.bench.shapes import SHAPES
from moorage.bench.timing import InstantCluster, prepare
from moorage.core.bindings import Bindings
from moorage.core.cycle import SchedulingCycle
from moorage.core.preemption import Preemptions
from moorage.core.queue import SchedulingQueue
from moorage.core.scheduler import Scheduler

COUNTED_NODES, COUNTED_PODS = 1000, 300
BENCHMARK = "the benchmark's own cluster"
STEPS: dict[tuple[type, str], str] = {
    (Scheduler, "schedule_one"): "`schedule_one` around its steps",
    (SchedulingQueue, "pop"): "take the pod from the queue",
    (SchedulingCycle, "decide"): "decide: refresh views or totals, select a node",
    (Scheduler, "_record"): "the `Decided` fact in the journal",
    (Bindings, "assume"): "assume: the columns of the node, the cache",
    (Bindings, "begin"): "the binding cycle, up to its request",
    (SchedulingCycle, "_post_filter"): "post_filter: dry runs, the choice of victims",
    (Preemptions, "begin"): "the eviction of victims, up to its requests",
    (Scheduler, "_reject"): "a rejection: condition, Event, queue",
    (Scheduler, "complete"): "`complete`: the outcome of a request",
    (Scheduler, "observe"): "`observe`: the pod as the API server shows it",
    (InstantCluster, "schedule_all"): BENCHMARK,
}


def count_opcodes(cluster: InstantCluster) -> Counter[str]:
    """The opcodes of a run by step, each counted for the innermost one."""
    steps = {getattr(owner, name).__code__: text for (owner, name), text in STEPS.items()}
    counts: Counter[str] = Counter()
    of_frame: dict[FrameType, str] = {}

    def called(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        assert event == "call"
        caller = frame.f_back
        around = BENCHMARK if caller is None else of_frame.get(caller, BENCHMARK)
        step = of_frame[frame] = steps.get(frame.f_code, around)
        frame.f_trace_opcodes, frame.f_trace_lines = True, False

        def run(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
            if event == "opcode":
                counts[step] += 1
            elif event == "return":
                of_frame.pop(frame, None)
            return run

        return run

    sys.settrace(called)
    try:
        cluster.schedule_all()
    finally:
        sys.settrace(None)
    return counts


class StepTimes:
    """The time of steps in nanoseconds, without the steps within them, and their calls."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.calls_within: Counter[str] = Counter()
        self._open = [("", 0)]  # The steps in progress, and the time of those within them.

    def wrap(self, function: Callable[..., Any], step: str) -> Callable[..., Any]:
        """The function; its calls are timed."""

        def run(*args: Any, **options: Any) -> Any:
            self._open.append((step, 0))
            began = perf_counter_ns()
            try:
                return function(*args, **options)
            finally:
                lasted = perf_counter_ns() - began
                self.spent[step] += lasted - self._open.pop()[1]
                self.calls[step] += 1
                around, within = self._open[-1]
                self._open[-1] = (around, within + lasted)
                self.calls_within[around] += 1

        return run

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """All calls of the steps are timed while it lasts."""
        functions = {(owner, name): getattr(owner, name) for owner, name in STEPS}
        for (owner, name), function in functions.items():
            setattr(owner, name, self.wrap(function, STEPS[owner, name]))
        try:
            yield
        finally:
            for (owner, name), function in functions.items():
                setattr(owner, name, function)


def clock_cost() -> tuple[float, float]:
    """What one call adds to the time of its step, and to that of the step around it."""
    times, calls = StepTimes(), 100_000
    call = times.wrap(lambda: None, "within")

    def call_often() -> None:
        for _ in range(calls):
            call()

    times.wrap(call_often, "around")()
    return times.spent["within"] / calls, times.spent["around"] / calls


def microseconds(size: Size, shape: str) -> dict[str, float]:
    """The time of a pod by step, in one run; without the clock's own."""
    workload = size.workload(SHAPES[shape])
    cluster, times = prepare(workload), StepTimes()
    within, around = clock_cost()
    with times.measuring(), garbage.collected_rarely():  # As in `moorage bench`.
        cluster.schedule_all()
    found = {
        step: spent - times.calls[step] * within - times.calls_within[step] * around
        for step, spent in times.spent.items()
    }
    return {step: nanoseconds / 1e3 / len(workload.pods) for step, nanoseconds in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "shape", nargs="?", default="basic", choices=sorted(SHAPES), metavar="SHAPE"
    )
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    for name in ("nodes", "repeat"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name} is {getattr(arguments, name)}; it has to be 1 or more")
    counted = Size(COUNTED_NODES, pods=COUNTED_PODS).workload(SHAPES[arguments.shape])
    opcodes = count_opcodes(prepare(counted))
    size = Size(arguments.nodes)
    runs = [microseconds(size, arguments.shape) for _ in range(arguments.repeat)]
    times = {step: median(run.get(step, 0.0) for run in runs) for step in runs[0]}
    print(f"| step of a pod in {arguments.shape} | opcodes | us |\n|---|---|---|")
    for step in STEPS.values():
        if opcodes[step]:
            print(f"| {step} | {opcodes[step] / COUNTED_PODS:,.0f} | {times.get(step, 0):.1f} |")
    print(f"| all | {opcodes.total() / COUNTED_PODS:,.0f} | {sum(times.values()):.1f} |")


if __name__ == "__main__":
    main()
