"""An event loop in virtual time, and the processes that run on it.

Nothing waits: if no callback is ready, the time jumps to the next timer. The callbacks of one
process run in their order, as on any loop. The order between processes, and of timers that are due
at the same time, is drawn from a seed. The same seed gives the same run.

There are no sockets and no threads. `asyncio.to_thread` calls the function at once, and its result
arrives a little later.
"""

import asyncio
import contextvars
import heapq

from moorage.live.clock import Clock

STEP_SECONDS = 1e-6  # So that time passes for a task that only yields.
THREAD_SECONDS = 0.05
LONGEST_SECONDS = 1000.0
START = 1_800_000_000.0  # The time of day at the start.

PROCESS = contextvars.ContextVar("process", default=None)


class SimulatedLoop(asyncio.BaseEventLoop):
    """See the module."""

    def __init__(self, random):
        super().__init__()
        self.random = random
        self.now = 0.0
        self.failures = []  # Exceptions of spawned tasks.
        # Without a process: the API server, the network, the test.
        self.outside = contextvars.Context()

    def time(self):
        return self.now

    def spawn(self, coroutine):
        """Start a task outside of all processes, which goes on if one is paused."""
        task = self.create_task(coroutine, context=self.outside.copy())
        task.add_done_callback(self.ended)
        return task

    def ended(self, task):
        """Remember the exception of a task that nothing awaits."""
        if not task.cancelled() and task.exception() is not None:
            self.failures.append(task.exception())

    def run_in_executor(self, executor, func, *arguments):
        future = self.create_future()
        try:
            result, error = func(*arguments), None
        except Exception as raised:
            result, error = None, raised

        def finish():
            if not future.done():
                future.set_exception(error) if error else future.set_result(result)

        self.call_later(self.random.uniform(0, THREAD_SECONDS), finish)
        return future

    def _run_once(self):
        """Run what is ready; asyncio calls this until the loop is stopped."""
        self.now += STEP_SECONDS
        if not self._ready:
            while self._scheduled and self._scheduled[0].cancelled():
                heapq.heappop(self._scheduled)
            assert self._scheduled, "every task waits for something that never comes"
            self.now = max(self.now, self._scheduled[0].when())
            assert self.now < LONGEST_SECONDS, "what the test waits for does not happen"
        due = []
        while self._scheduled and self._scheduled[0].when() <= self.now:
            due.append(heapq.heappop(self._scheduled))
        self.random.shuffle(due)
        for handle in self._shuffled([*self._ready, *due]):
            if not handle.cancelled():
                handle._run()

    def _shuffled(self, handles):
        """Handles of one process in order, processes in any order; paused ones keep theirs."""
        self._ready.clear()
        queues = {}
        for handle in handles:
            process = handle._context.get(PROCESS)
            if process is not None and process.is_paused:
                process.held.append(handle)
            else:
                queues.setdefault(process, []).append(handle)
        if len(queues) == 1:
            return next(iter(queues.values()))
        order = [process for process, queue in queues.items() for _ in queue]
        self.random.shuffle(order)
        ordered = {process: iter(queue) for process, queue in queues.items()}
        return [next(ordered[process]) for process in order]

    def _timer_handle_cancelled(self, handle):
        pass

    def _write_to_self(self):
        pass


class Process:
    """A process on the loop: it can be paused (SIGSTOP), and has clocks of its own."""

    def __init__(self, loop, name):
        self.loop = loop
        self.name = name
        self.is_paused = False
        self.is_dead = False
        self.held = []  # What would have run meanwhile.
        self.clock = ProcessClock(loop)

    def spawn(self, coroutine):
        context = self.loop.outside.copy()
        context.run(PROCESS.set, self)
        return self.loop.create_task(coroutine, context=context)

    def pause(self):
        self.is_paused = True

    def resume(self):
        self.is_paused = False
        self.loop._ready.extend(self.held)
        self.held.clear()


class ProcessClock(Clock):
    """Virtual time; `ahead` is how wrong the time of day is."""

    def __init__(self, loop):
        self.monotonic = loop.time
        self.ahead = 0.0

    def boot(self):
        return self.monotonic()

    def wall(self):
        return START + self.monotonic() + self.ahead


def run(main, random):
    """Run a coroutine function of the loop to its end."""
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(random)) as runner:
        loop = runner.get_loop()
        return runner.run(main(loop), context=loop.outside.copy())
