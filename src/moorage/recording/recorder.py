"""ClusterRecorder: list and watch a live cluster, and write every change as a line of a recording.

The objects that are listed first have the time 0; later changes count from the end of these lists.
An update that changes nothing that scheduling reads, such as the heartbeat of a node, is left out.
Memory grows with the cluster and not with time: reflectors keep the last version of each object,
so that after a gap (410) the differences are recorded.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from moorage.api.kinds import Kind
from moorage.api.meta import KubeObject
from moorage.core.observations import Deleted, Listed, Observation
from moorage.live.client import Client
from moorage.live.reflector import ObservationQueue, Reflector
from moorage.planning.recording import RecordingFile
from moorage.sim import trace
from moorage.sim.trace import Line

# How often what was recorded reaches the file.
FLUSH_SECONDS = 1.0
# How often it is checked whether everything is listed.
LISTING_SECONDS = 0.05

_encode = msgspec.json.Encoder().encode


class ClusterRecorder:
    """See the module."""

    def __init__(self, client: Client, kinds: Iterable[Kind], file: RecordingFile) -> None:
        self.objects = 0  # At the start.
        self.changes: Counter[str] = Counter()  # After that, by kind.
        self._file = file
        self._observations = ObservationQueue()
        self.reflectors = [Reflector(client, kind, self._observations) for kind in kinds]
        self._stop = asyncio.Event()
        self._started_at: float | None = None
        # The content of each object, as a hash, by kind and key.
        self._contents: dict[tuple[str, str], int] = {}

    @property
    def seconds(self) -> float:
        """How long changes have been recorded."""
        return 0.0 if self._started_at is None else time.monotonic() - self._started_at

    @property
    def is_started(self) -> bool:
        """Whether everything has been listed."""
        return self._started_at is not None

    def stop(self) -> None:
        """Write what was observed, and return from `run`."""
        self._stop.set()

    async def run(self) -> None:
        """Record until stopped; an error of the file or a bug is raised."""
        self._file.write(Line(at=0.0, call="start", replica=0, seed=0))
        tasks = [asyncio.create_task(each.run()) for each in self.reflectors]
        settling = asyncio.gather(*(each.settled() for each in self.reflectors))
        tasks.append(asyncio.create_task(self._write_all(settling)))
        stopped = asyncio.create_task(self._stop.wait())
        try:
            done, _ = await asyncio.wait([*tasks, stopped], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            settling.cancel()
            for task in (*tasks, stopped):
                task.cancel()
            await asyncio.gather(*tasks, stopped, settling, return_exceptions=True)
        self._drain()

    async def _write_all(self, settling: asyncio.Future[list[None]]) -> None:
        flush_at = 0.0
        while True:
            wake = self._observations.wake
            wake.clear()
            is_listed = settling.done()
            self._drain()
            if is_listed and self._started_at is None:
                self.objects, self.changes = self.changes.total(), Counter()
                self._started_at = time.monotonic()
            if time.monotonic() >= flush_at:
                self._file.flush()
                flush_at = time.monotonic() + FLUSH_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS if is_listed else LISTING_SECONDS):
                    await wake.wait()

    def _drain(self) -> None:
        while (observation := self._observations.take()) is not None:
            if self._is_change(observation):
                at = round(self.seconds, 6)
                fields = trace.observed(observation)
                self.changes[fields["kind"]] += 1
                self._file.write(Line(at=at, call="observe", replica=0, **fields))

    def _is_change(self, observation: Observation) -> bool:
        """Whether something changed that scheduling reads."""
        assert not isinstance(observation, Listed), "reflectors observe differences"
        obj = observation.obj
        name = (type(obj).__name__, obj.key)
        if isinstance(observation, Deleted):
            self._contents.pop(name, None)
            return True
        content = hash(_encode(_content(obj)))
        if self._contents.get(name) == content:
            return False
        self._contents[name] = content
        return True


def _content(obj: KubeObject) -> KubeObject:
    return replace(obj, metadata=replace(obj.metadata, resource_version="", generation=0))
