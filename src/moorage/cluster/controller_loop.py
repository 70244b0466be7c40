"""The controller loop: changes trigger tasks, tasks yield writes, writes go to the API.

A task runs once however many changes triggered it. After an expensive task, such as a set of
thousands of pods, the same task pauses in proportion to its cost, so that a busy workload does not
delay the others.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Protocol, assert_never

from moorage.cluster.event_writer import EventCorrelator
from moorage.cluster.status_errors import ConflictError, NotFoundError, StatusError
from moorage.controllers import events, tasks
from moorage.controllers.events import NewEvent
from moorage.controllers.index import WORKLOAD, ObjectIndex, Task, key_of
from moorage.controllers.objects import Object
from moorage.controllers.tasks import Reconcilers
from moorage.controllers.writes import Create, Delete, Report, RequeueAt, Update, Write

# After a task that took t seconds to decide, the same task pauses for this many times t.
PAUSE_FACTOR = 4
MIN_PAUSE_SECONDS = 0.01
MAX_WRITES = 100
FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 0.5, 60.0


class Client(Protocol):
    """Performs the writes of controllers; raises StatusError."""

    def create(self, obj: Object) -> Object: ...
    def update(self, obj: Object) -> None: ...
    def delete(self, obj: Object, grace_seconds: int | None, propagation: str | None) -> None: ...
    def emit(self, obj: Object, event: NewEvent) -> None: ...


class ControllerLoop:
    """All controllers on one store.

    `report_error` gets the exceptions of controllers, with the task. Without `emits_events` no
    Events are emitted. A task with more than `max_writes` writes is queued again behind the others.
    Tasks `without` which it runs are those of another program, such as kube-controller-manager.
    """

    def __init__(
        self,
        client: Client,
        *,
        now: Callable[[], float],
        stopwatch: Callable[[], float],
        report_error: Callable[[Task, Exception], None],
        index: ObjectIndex | None = None,
        emits_events: bool = True,
        max_writes: int = MAX_WRITES,
        without: Collection[str] = (),
    ) -> None:
        self._client = client
        self._now = now  # the time in objects
        self._stopwatch = stopwatch  # monotonic, to measure costs
        self._report_error = report_error
        self.index = ObjectIndex() if index is None else index
        self._emits_events = emits_events
        self._max_writes = max_writes
        self._without = frozenset(without)
        self._reconcilers = Reconcilers()
        self._correlator = EventCorrelator()
        self._changes: deque[tuple[Object | None, Object | None]] = deque()
        self._ready: dict[Task, None] = {}
        self._delayed: list[tuple[float, int, Task]] = []
        self._delayed_until: dict[Task, float] = {}
        self._awaited: dict[Task, None] = {}
        self._paused_until: dict[Task, float] = {}
        self._retries: dict[Task, int] = {}
        self._serial = 0
        self._decision_seconds = 0.0  # of the current task

    def observe(self, old: Object | None, new: Object | None) -> None:
        """Queue a change for the next turn."""
        self._changes.append((old, new))

    def trigger(self, task: Task) -> None:
        """Queue a task, unless it pauses."""
        paused_until = self._paused_until.get(task)
        if paused_until is not None and paused_until > self._now():
            self._delay(task, paused_until, awaited=True)
        else:
            self._ready[task] = None

    @property
    def has_work(self) -> bool:
        return bool(self._changes or self._ready)

    @property
    def deadline(self) -> float | None:
        """When the next delayed task is due."""
        return self._delayed[0][0] if self._delayed else None

    @property
    def is_awaiting(self) -> bool:
        """Whether a workload makes progress by a delayed task."""
        return bool(self._awaited)

    def turn(self, budget_seconds: float) -> None:
        """Run tasks for that long, or until none is ready."""
        end = self._stopwatch() + budget_seconds
        self._queue_due_tasks()
        while self.has_work and self._stopwatch() < end:
            self.process_changes()
            if self._ready:
                task = next(iter(self._ready))
                del self._ready[task]
                self._run(task)

    # The queue

    def process_changes(self) -> None:
        """Update the index, and queue the tasks that changes trigger."""
        while self._changes:
            old, new = self._changes.popleft()
            if new is not None:
                old = self.index.put(new)
            elif old is not None:
                self.index.drop(old)
                self._reconcilers.forget(old)
                self._correlator.forget(old)
            for task in tasks.tasks_for_change(old, new, self.index):
                if task[0] not in self._without:
                    self.trigger(task)

    def _delay(self, task: Task, at: float, *, awaited: bool = False) -> None:
        if awaited:
            self._awaited[task] = None
        if self._delayed_until.get(task, float("inf")) > at:
            self._delayed_until[task] = at
            self._serial += 1
            heapq.heappush(self._delayed, (at, self._serial, task))

    def _queue_due_tasks(self) -> None:
        now = self._now()
        while self._delayed and self._delayed[0][0] <= now:
            at, _, task = heapq.heappop(self._delayed)
            if self._delayed_until.get(task) == at:  # Otherwise an earlier time replaced it.
                del self._delayed_until[task]
                self._awaited.pop(task, None)
                self._paused_until.pop(task, None)
                self._ready[task] = None

    # Running tasks

    def _run(self, task: Task) -> None:
        name, key = task
        obj = self.index.get(*key)
        if obj is None:
            self._retries.pop(task, None)
            self._paused_until.pop(task, None)
            self.index.failures.pop(task, None)
            return
        now, self._decision_seconds = self._now(), 0.0
        try:
            failed = self._perform(task, self._reconcilers.reconcile(name, obj, self.index, now))
        except Exception as error:  # A controller that fails on one object serves the others.
            self._report_error(task, error)
            failed = True
        if failed:
            tries = self._retries[task] = self._retries.get(task, 0) + 1
            wait = min(FIRST_RETRY_SECONDS * 2.0 ** min(tries - 1, 10), MAX_RETRY_SECONDS)
            self._delay(task, now + wait)
        else:
            self._retries.pop(task, None)
        pause = self._decision_seconds * PAUSE_FACTOR
        if pause > MIN_PAUSE_SECONDS:
            self._paused_until[task] = now + pause
        else:
            self._paused_until.pop(task, None)

    def _perform(self, task: Task, writes: Iterator[Write]) -> bool:
        """Perform the writes of a controller; returns whether one failed."""
        failed = False
        failures = self.index.failures
        failures.pop(task, None)
        for count in itertools.count():
            began = self._stopwatch()
            write = next(writes, None)
            self._decision_seconds += self._stopwatch() - began
            if write is None:
                return failed
            if count == self._max_writes:
                self._ready[task] = None
                return failed
            try:
                self._write(task, write)
            except (NotFoundError, ConflictError):
                # An update or deletion that fails so was overtaken by another change.
                failed = failed or isinstance(write, Create)
            except StatusError as error:
                if isinstance(write, Create) and not failed:
                    failures[task] = str(error)
                    self._emit_failure(task, write, error)
                failed = True
        raise AssertionError("unreachable")

    def _write(self, task: Task, write: Write) -> None:
        match write:
            case Create(obj):
                self._emit(task, write, self._client.create(obj))
            case Update(obj):
                self._client.update(obj)
                self._emit(task, write, obj)
            case Delete(obj, grace_seconds, propagation):
                self._client.delete(obj, grace_seconds, propagation)
                self._emit(task, write, obj)
            case RequeueAt(at, awaited):
                self._delay(task, at, awaited=awaited)
            case Report(obj, reason, message, reporter, type_):
                self._client.emit(obj, NewEvent(type_, reason, message, reporter))
            case _:
                assert_never(write)

    def _emit(self, task: Task, write: Create | Update | Delete, written: Object) -> None:
        """Emit the Event of a workload's write; the index does not contain the write yet."""
        name, key = task
        if name != WORKLOAD or not self._emits_events:
            return
        owner = self.index.get(*key)
        if owner is None:
            return
        event = events.event_for_write(owner, write, written, self.index.get(*key_of(written)))
        if event is not None:
            event = self._correlator.correlate(owner, event, self._now())
        if event is not None:
            self._client.emit(owner, event)

    def _emit_failure(self, task: Task, write: Create, error: StatusError) -> None:
        owner = self.index.get(*task[1])
        if owner is not None and self._emits_events:
            self._client.emit(owner, events.creation_failed(owner, write.obj, str(error)))
