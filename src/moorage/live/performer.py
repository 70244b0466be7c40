"""Performer: effects -> API calls, many at a time -> outcomes.

What is asked about one pod is carried out in the order in which it was asked; what is asked about
different ones, side by side. A status that waits for its turn is merged with a later one.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

from msgspec import UNSET, structs

from moorage.core.effects import Done, Effect, Failed, Outcome, Ticket, Unknown
from moorage.framework.effects import BindPod, EmitEvent, PatchPodStatus, Request
from moorage.live import calls, logs
from moorage.live.client import Client, Fence
from moorage.live.event_recorder import EventRecorder
from moorage.live.ports import Ports

# Each takes a connection of its own, and a TLS handshake costs as much as five bindings. At 20 ms a
# request this is 1,600 a second, more than an API server likes to take from one client.
CONCURRENCY = 32

Finished = Callable[[Ticket, Outcome], None]


class Performer:
    """See the module; `finished` gets each outcome, `in_trouble` what is a mistake of ours."""

    def __init__(
        self,
        client: Client,
        events: EventRecorder,
        fence: Fence,
        finished: Finished,
        in_trouble: Callable[[BaseException], None],
        *,
        concurrency: int = CONCURRENCY,
        ports: Ports | None = None,
    ) -> None:
        self.bindings = 0  # Sent or waiting to be.
        self._client = client
        self._events = events
        self._fence = fence
        self._finished = finished
        self._in_trouble = in_trouble
        self._concurrency = concurrency
        self._ports = ports
        self._log = logs.named("performer")
        self._ready: deque[Effect] = deque()
        # Pods about which something is ready or under way, with what has to wait for that.
        self._lines: dict[str, deque[Effect]] = {}
        self._workers: set[asyncio.Task[None]] = set()

    def perform(self, effects: Iterable[Effect]) -> None:
        """Begin to carry these out."""
        for effect in effects:
            request = effect.request
            if isinstance(request, EmitEvent):
                self._events.emit(request)  # Nobody waits for it.
                continue
            if isinstance(request, BindPod):
                self.bindings += 1
            self._line_up(effect, request)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._lines

    async def drained(self) -> None:
        """Wait until nothing is under way."""
        while self._workers:
            await asyncio.wait(self._workers)

    async def close(self) -> None:
        """Drop what has not been sent."""
        self._ready.clear()
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    def _line_up(self, effect: Effect, request: Request) -> None:
        line = self._lines.get(request.pod.uid)
        if line is None:
            self._lines[request.pod.uid] = deque()
            self._start(effect)
        elif merged := _merged(line[-1], effect) if line else None:
            self._finished(line[-1].ticket, Done())
            line[-1] = merged
        else:
            line.append(effect)

    def _start(self, effect: Effect) -> None:
        self._ready.append(effect)
        if len(self._workers) < self._concurrency:
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._ended)

    def _ended(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        trouble = None if worker.cancelled() else worker.exception()
        if trouble is not None:
            self._in_trouble(trouble)

    async def _work(self) -> None:
        while self._ready:
            effect = self._ready.popleft()
            request = effect.request
            outcome = await self._carry_out(request)
            if not isinstance(outcome, Done):
                self._say(request, outcome)
            if isinstance(request, BindPod):
                self.bindings -= 1
            self._finished(effect.ticket, outcome)
            line = self._lines[request.pod.uid]
            if line:
                self._ready.append(line.popleft())
            else:
                del self._lines[request.pod.uid]

    def _carry_out(self, request: Request) -> Awaitable[Outcome]:
        if isinstance(request, BindPod) and request.extender and self._ports is not None:
            return self._bind(request, self._ports)
        return calls.carry_out(self._client, request, self._fence)

    async def _bind(self, request: BindPod, ports: Ports) -> Outcome:
        if not self._fence():
            return Failed("not sent: this scheduler does not lead any more")
        return await ports.bind(request)

    def _say(self, request: Request, outcome: Failed | Unknown) -> None:
        self._log.warning(
            "not done" if isinstance(outcome, Failed) else "nobody knows whether it was done",
            request=type(request).__name__,
            pod=request.pod.key,
            why=outcome.reason,
        )


def _merged(waiting: Effect, newer: Effect) -> Effect | None:
    """One status for two; None if they are not about that."""
    old, new = waiting.request, newer.request
    if not (isinstance(old, PatchPodStatus) and isinstance(new, PatchPodStatus)):
        return None
    nominated = new.nominated_node_name
    both = structs.replace(
        new,
        condition=new.condition or old.condition,
        nominated_node_name=old.nominated_node_name if nominated is UNSET else nominated,
    )
    return Effect(newer.ticket, both)
