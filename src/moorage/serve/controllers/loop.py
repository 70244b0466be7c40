"""The loop: changes come in, tasks are looked at, writes go out.

A task is looked at once however many changes called for it. What costs much to look at, a set of
thousands of pods, is looked at the less often the more it costs, so that a busy workload never
keeps all others waiting.
"""

import heapq
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, assert_never

from moorage.serve.controllers import events, triggers
from moorage.serve.controllers.events import EventCorrelator
from moorage.serve.controllers.index import ObjectIndex, key_of
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.reconcilers import Reconcilers
from moorage.serve.controllers.triggers import Task
from moorage.serve.controllers.writes import (
    CreateObject,
    DeleteObject,
    RequeueAt,
    UpdateObject,
    Write,
)
from moorage.serve.event_writer import NewEvent
from moorage.serve.status_errors import ConflictError, NotFoundError, StatusError

# After a look that took t seconds to decide, the same task rests for so many times t.
REST_FACTOR = 4
SHORTEST_REST_SECONDS = 0.01
# So many writes at a time; whoever wants more is asked again at once, when others had their turn.
MOST_WRITES = 100
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.5, 60.0


class ObjectWriter(Protocol):
    """How writes reach the store, with the API server's manners."""

    def create(self, obj: Object) -> Object: ...
    def update(self, obj: Object) -> None: ...
    def delete(self, obj: Object, grace_seconds: int | None, propagation: str | None) -> None: ...
    def tell(self, obj: Object, note: NewEvent) -> None: ...


class Noticed(NamedTuple):
    """A change: the object before, and after."""

    old: Object | None
    new: Object | None


class ControllerLoop:
    """All controllers on one store."""

    def __init__(
        self, hands: ObjectWriter, *, now: Callable[[], float], stopwatch: Callable[[], float]
    ) -> None:
        self._hands = hands
        self._now = now  # the time of day, which objects state
        self._stopwatch = stopwatch  # runs evenly, and measures what things cost
        self.view = ObjectIndex()
        self._reconcilers = Reconcilers()
        self._restraint = EventCorrelator()
        self._news: deque[Noticed] = deque()
        self._ready: dict[Task, None] = {}
        self._later: list[tuple[float, int, Task]] = []
        self._due: dict[Task, float] = {}
        self._rests_until: dict[Task, float] = {}
        self._retries: dict[Task, int] = {}
        self._serial = 0
        self._deciding = 0.0  # how long the present look has taken to decide

    def notice(self, old: Object | None, new: Object | None) -> None:
        """Something changed; it is looked at in the next turn."""
        self._news.append(Noticed(old, new))

    @property
    def has_work(self) -> bool:
        return bool(self._news or self._ready)

    @property
    def deadline(self) -> float | None:
        """When something is to be looked at again by the mere passing of time."""
        return self._later[0][0] if self._later else None

    def turn(self, budget_seconds: float) -> None:
        """Work for so long, or until nothing is left to do now."""
        end = self._stopwatch() + budget_seconds
        self._wake()
        while self.has_work and self._stopwatch() < end:
            self._take_in()
            if self._ready:
                task = next(iter(self._ready))
                del self._ready[task]
                self._look(task)

    # What to look at

    def _take_in(self) -> None:
        while self._news:
            old, new = self._news.popleft()
            if new is not None:
                old = self.view.put(new)
            elif old is not None:
                self.view.drop(old)
                self._reconcilers.forget(old)
                self._restraint.forget(old)
            for task in triggers.of_change(old, new, self.view):
                self._call_for(task)

    def _call_for(self, task: Task) -> None:
        rests_until = self._rests_until.get(task)
        if rests_until is not None and rests_until > self._now():
            self._at(rests_until, task)
        else:
            self._ready[task] = None

    def _at(self, at: float, task: Task) -> None:
        if self._due.get(task, float("inf")) > at:
            self._due[task] = at
            self._serial += 1
            heapq.heappush(self._later, (at, self._serial, task))

    def _wake(self) -> None:
        now = self._now()
        while self._later and self._later[0][0] <= now:
            at, _, task = heapq.heappop(self._later)
            if self._due.get(task) == at:  # Otherwise something earlier took its place.
                del self._due[task]
                self._rests_until.pop(task, None)
                self._ready[task] = None

    # Looking

    def _look(self, task: Task) -> None:
        name, key = task
        obj = self.view.get(*key)
        if obj is None:
            self._retries.pop(task, None)
            self._rests_until.pop(task, None)
            return
        now, self._deciding = self._now(), 0.0
        try:
            failed = self._carry_out(task, self._reconcilers.reconcile(name, obj, self.view, now))
        except Exception:  # A controller that stumbles over one object goes on with the others.
            logging.getLogger(__name__).exception("%s: %s", name, "/".join(key))
            failed = True
        if failed:
            tries = self._retries[task] = self._retries.get(task, 0) + 1
            wait = min(FIRST_RETRY_SECONDS * 2.0 ** min(tries - 1, 10), LONGEST_RETRY_SECONDS)
            self._at(now + wait, task)
        else:
            self._retries.pop(task, None)
        rest = self._deciding * REST_FACTOR
        if rest > SHORTEST_REST_SECONDS:
            self._rests_until[task] = now + rest
        else:
            self._rests_until.pop(task, None)

    def _carry_out(self, task: Task, writes: Iterator[Write]) -> bool:
        """Do what a controller wants done; says whether something was refused."""
        failed = False
        for count in range(MOST_WRITES + 1):
            began = self._stopwatch()
            write = next(writes, None)
            self._deciding += self._stopwatch() - began
            if write is None:
                return failed
            if count == MOST_WRITES:
                self._ready[task] = None
                return failed
            try:
                self._write(task, write)
            except (NotFoundError, ConflictError):
                failed = failed or isinstance(
                    write, CreateObject
                )  # Else overtaken by other changes.
            except StatusError as refusal:
                if isinstance(write, CreateObject) and not failed:
                    self._complain(task, refusal)
                failed = True
        return failed

    def _write(self, task: Task, write: Write) -> None:
        match write:
            case CreateObject(obj):
                self._tell(task, write, self._hands.create(obj))
            case UpdateObject(obj):
                self._hands.update(obj)
                self._tell(task, write, obj)
            case DeleteObject(obj, grace_seconds, propagation):
                self._hands.delete(obj, grace_seconds, propagation)
                self._tell(task, write, obj)
            case RequeueAt(at):
                self._at(at, task)
            case _:
                assert_never(write)

    def _tell(
        self, task: Task, write: CreateObject | UpdateObject | DeleteObject, written: Object
    ) -> None:
        """Let people know what a workload's controller did; the view is still as it was before."""
        name, key = task
        owner = self.view.get(*key) if name == triggers.WORKLOAD else None
        if owner is None:
            return
        note = events.event_for_write(owner, write, written, self.view.get(*key_of(written)))
        if note is not None:
            note = self._restraint.hold(owner, note, self._now())
        if note is not None:
            self._hands.tell(owner, note)

    def _complain(self, task: Task, refusal: StatusError) -> None:
        owner = self.view.get(*task[1])
        if owner is not None:
            note = f"Error creating: {refusal}"
            complaint = NewEvent("Warning", "FailedCreate", note, events.reporter(owner))
            self._hands.tell(owner, complaint)
