"""What each step of a pod costs: opcodes of CPython and microseconds, without the steps within it.

    .venv/bin/python tools/step_cost.py basic
    .venv/bin/python tools/step_cost.py zone-spread --nodes 5000

Opcodes are counted while a few hundred pods are scheduled; they do not depend on the machine. The
time is taken in runs of its own, in which every step reads the clock when it begins and ends; what
that takes is estimated from the difference to a run without, and shared out by the number of calls.
"""

import argparse
import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter_ns, process_time
from types import FrameType
from typing import Any

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


@contextmanager
def timed(spent: Counter[str], calls: Counter[str]) -> Iterator[None]:
    """While it lasts, the steps add their time to `spent`, without the steps within them."""
    within = [0]

    def wrap(function: Callable[..., Any], step: str) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            within.append(0)
            began = perf_counter_ns()
            try:
                return function(*args, **options)
            finally:
                lasted = perf_counter_ns() - began
                spent[step] += lasted - within.pop()
                calls[step] += 1
                within[-1] += lasted

        return run

    functions = {(owner, name): getattr(owner, name) for owner, name in STEPS}
    for (owner, name), function in functions.items():
        setattr(owner, name, wrap(function, STEPS[owner, name]))
    try:
        yield
    finally:
        for (owner, name), function in functions.items():
            setattr(owner, name, function)


def seconds(cluster: InstantCluster) -> float:
    """CPU time of a run."""
    gc.collect()
    gc.disable()
    began = process_time()
    cluster.schedule_all()
    lasted = process_time() - began
    gc.enable()
    return lasted


def microseconds(size: Size, shape: str) -> dict[str, float]:
    """The time of a pod by step, in one run; without the clock's own."""
    make = SHAPES[shape]
    workload = size.workload(make)
    pods = len(workload.pods)
    plain = seconds(prepare(workload))
    spent, calls = Counter[str](), Counter[str]()
    cluster = prepare(size.workload(make))  # Pods keep what was computed of them.
    with timed(spent, calls):
        whole = seconds(cluster)
    per_call = max(whole - plain, 0.0) / calls.total()
    found = {step: spent[step] / 1e9 - calls[step] * per_call / 2 for step in spent}
    found[BENCHMARK] = plain - sum(found.values())
    return {step: 1e6 * each / pods for step, each in found.items()}


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
    for step in (*STEPS.values(), BENCHMARK):
        if opcodes[step]:
            print(f"| {step} | {opcodes[step] / COUNTED_PODS:,.0f} | {times.get(step, 0):.1f} |")
    print(f"| all | {opcodes.total() / COUNTED_PODS:,.0f} | {sum(times.values()):.1f} |")


if __name__ == "__main__":
    main()
