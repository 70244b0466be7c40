"""Workers on this machine's cores, each a process of its own.

Python runs one thread at a time, so several processes are needed to use all cores. They are spawned
rather than forked, because a fork inherits open files and locks of threads.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from moorage.errors import InputError

T = TypeVar("T")
R = TypeVar("R")

# Submit a few more items than there are workers, so that no worker is idle.
AHEAD = 2

_function: Callable[[Any], Any]


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def as_completed(
    function: Callable[[T], R], items: Sequence[T], workers: int | None = None
) -> Iterator[tuple[int, R]]:
    """Call a function for every item; yields (index, result) as they finish.

    With one worker, or one item, everything runs in this process.
    """
    workers = min(workers or cores(), len(items))
    if workers <= 1:
        yield from ((index, function(item)) for index, item in enumerate(items))
        return
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(function,))
    try:
        yield from _results(pool, items, AHEAD * workers)
    except BrokenProcessPool:
        raise InputError(
            "a worker process died, maybe for lack of memory; fewer --workers may help"
        ) from None
    except BaseException:
        # A caller that stops early does not wait for unfinished items.
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            if process not in others:
                process.terminate()
        raise
    finally:
        pool.shutdown()


def each(
    function: Callable[[T], R],
    items: Sequence[T],
    workers: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[R]:
    """The same, with the results in the order of the items."""
    results: dict[int, R] = {}
    for index, result in as_completed(function, items, workers):
        results[index] = result
        if on_progress is not None:
            on_progress(len(results), len(items))
    return [results[index] for index in range(len(items))]


def _results(
    pool: ProcessPoolExecutor, items: Sequence[T], ahead: int
) -> Iterator[tuple[int, Any]]:
    running: dict[Future[Any], int] = {}
    waiting: Iterable[tuple[int, T]] = iter(enumerate(items))
    while True:
        for index, item in waiting:
            running[pool.submit(_call, item)] = index
            if len(running) >= ahead:
                break
        if not running:
            return
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield running.pop(future), future.result()


def _begin(function: Callable[[Any], Any]) -> None:
    """Keep the function, which may hold a whole cluster, once in each worker.

    Ctrl-C reaches all processes of a terminal; only the main process handles it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    global _function  # A worker process serves one sweep.
    _function = function


def _call(item: Any) -> Any:
    return _function(item)
