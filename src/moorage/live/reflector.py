"""Reflector: list and watch one kind -> observations, whatever the network does.

    state      does                                   goes on to
    LISTING    reads all pages, tells what differs    WATCHING
    WATCHING   tells each line                        WATCHING again where it stopped, if the
                                                      connection ends or breaks; LISTING if the
                                                      version is too old (410) or a line cannot
                                                      be read

It keeps the last version of each object, so a new list is told as the few differences that it
makes, deletions that nobody saw included. (One `Listed` would say the same, but the core takes
it in at one go, and with very many pods that is longer than a shell may be away.)
"""

import asyncio
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator

from moorage.api.kinds import Kind
from moorage.api.meta import KubeObject
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.live import kinds, listing, logs, paths, refusals, wire
from moorage.live.client import Client
from moorage.live.news import News
from moorage.live.refusals import ApiError, Refused

# A watch ends by itself after a while, at a different one for each, so that they spread out.
WATCH_SECONDS = (300, 600)
GRACE_SECONDS = 15.0
# A watch that ends sooner than this had no time to be one: wait before the next.
SHORT_SECONDS = 1.0
FIRST_WAIT_SECONDS = 0.4
# client-go waits up to 30 s, for the sake of a server that thousands ask. Schedulers are few, and
# for as long as one waits here it is blind: pods wait with it when the server is back already.
LONGEST_WAIT_SECONDS = 5.0
# Connections break all the time; when that happens so often in a row, somebody should know.
LOUD_FAILURES = 3
UNSERVED_WAIT_SECONDS = 60.0
# An API server that starts forbids everything until it has read the roles.
FORBIDDEN_SECONDS = 10.0


class Reflector:
    """One kind's way from the API server to the core."""

    def __init__(
        self,
        client: Client,
        kind: Kind,
        news: News,
        *,
        needed_by: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.kind = kind
        self.is_synced = False  # Whether all that there is was told at least once.
        self.unserved = ""  # Why the cluster does not serve the kind, or nothing.
        self.listed_at = -math.inf  # When the last list began.
        self._client = client
        self._news = news
        self._needed_by = needed_by
        self._clock = clock
        self._log = logs.named("reflector").bound(kind=kind.name)
        self._random = random.Random()
        self._selector = listing.selector(kind)
        self._known: dict[str, KubeObject] = {}
        self._version = ""  # Of the list or line that was told last; empty: list anew.
        self._failures = 0
        self._forbidden_since = math.inf
        self._turn: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()  # Listed, or known to be unserved.

    # For others

    async def settled(self) -> None:
        """Wait until all that there is was told, or the cluster says that it has no such kind."""
        await self._settled.wait()

    async def refresh(self) -> None:
        """List anew, now, and wait until that is told."""
        self._version = ""
        self._settled.clear()
        if self._turn is not None:
            self._turn.cancel()
        await self._settled.wait()

    def keys(self) -> Iterable[str]:
        """The objects that are there, by namespace and name."""
        return self._known.keys()

    def __len__(self) -> int:
        return len(self._known)

    # The life of it

    async def run(self) -> None:
        """Go on until cancelled."""
        try:
            while True:
                self._turn = asyncio.create_task(self._follow())
                await asyncio.wait({self._turn})
                if not self._turn.cancelled():  # Else somebody wants a new list at once.
                    self._turn.result()
        finally:
            if self._turn is not None:
                self._turn.cancel()

    async def _follow(self) -> None:
        """One list or one watch, and the wait behind it."""
        wait_seconds = 0.0
        try:
            await (self._watch() if self._version else self._list())
        except Refused as refused:
            wait_seconds = self._refused(refused)
        except wire.Unreadable as trouble:
            self._log.warning("listing anew", why=str(trouble))
            self._version = ""
            wait_seconds = self._back_off()
        except ApiError as trouble:
            wait_seconds = self._back_off()
            about = {"why": str(trouble), "seconds": round(wait_seconds, 2)}
            if self._failures < LOUD_FAILURES or self.kind.name not in kinds.INDISPENSABLE:
                self._log.verbose(1, "trying again", **about)
            else:
                self._log.warning("the API server cannot be reached; trying again", **about)
        if wait_seconds:
            await asyncio.sleep(wait_seconds)

    def _refused(self, refused: Refused) -> float:
        if refused.code == refusals.GONE:
            self._log.verbose(1, "listing anew", why=str(refused))
            self._version = ""
            return self._back_off() if self._failures else self._count_failure()
        if not self._version and self._is_spared(refused):
            self._is_unserved(refused)
            return UNSERVED_WAIT_SECONDS * self._random.uniform(0.8, 1.2)
        wait_seconds = self._back_off()
        self._log.warning("trying again", why=str(refused), seconds=round(wait_seconds, 2))
        return max(wait_seconds, refused.retry_after_seconds or 0.0)

    def _is_spared(self, refused: Refused) -> bool:
        """Whether to go on without the kind: there is none, or it stays forbidden for long."""
        if self.kind.name in kinds.INDISPENSABLE:
            return False
        if refused.code != refusals.FORBIDDEN:
            return refused.code == refusals.NOT_FOUND
        self._forbidden_since = min(self._forbidden_since, self._clock())
        return self._clock() - self._forbidden_since >= FORBIDDEN_SECONDS

    def _is_unserved(self, refused: Refused) -> None:
        if not self.unserved:
            plugins = ", ".join(self._needed_by) or "no plugin"
            self._log.warning(
                "the cluster does not serve this kind; going on without it",
                why=str(refused),
                needed_by=plugins,
            )
        self.unserved = str(refused)
        self._settled.set()

    def _count_failure(self) -> float:
        self._failures += 1
        return 0.0

    def _back_off(self) -> float:
        longest = min(FIRST_WAIT_SECONDS * 2.0**self._failures, LONGEST_WAIT_SECONDS)
        self._failures = min(self._failures + 1, 16)
        return self._random.uniform(longest / 2, longest)

    # List

    async def _list(self) -> None:
        began = self._clock()
        objects, version = await listing.everything(self._client, self.kind, self._log)
        self._news.put(self._differences(objects))
        self._version = version
        self._log.verbose(2, "listed", objects=len(objects), version=version)
        self.listed_at = began
        self.unserved = ""
        self._forbidden_since = math.inf
        self.is_synced = True
        self._settled.set()

    def _differences(self, objects: list[KubeObject]) -> Iterator[Observation]:
        """What a list tells that is not known yet; deletions first, since they make room."""
        listed = {obj.key: obj for obj in objects}
        before, self._known = self._known, listed
        for key, obj in before.items():
            if key not in listed:
                yield Deleted(obj)
        for key, obj in listed.items():
            old = before.get(key)
            if old is None:
                yield Added(obj)
            elif not _is_same(old, obj):
                yield Updated(obj)

    # Watch

    async def _watch(self) -> None:
        seconds = self._random.randint(*WATCH_SECONDS)
        at = paths.query(
            paths.of_kind(self.kind),
            watch="true",
            allowWatchBookmarks="true",
            fieldSelector=self._selector,
            resourceVersion=self._version,
            timeoutSeconds=seconds,
        )
        began = self._clock()
        try:
            async with self._client.stream(at, seconds=seconds + GRACE_SECONDS) as stream:
                rest = b""
                while chunk := await stream.readany():
                    *lines, rest = (rest + chunk).split(b"\n")
                    if lines:
                        self._news.put(self._told(lines))
                        self._failures = 0
                if rest.strip():
                    self._log.verbose(1, "the watch ended within a line")
        finally:
            lasted = self._clock() - began
        if lasted >= SHORT_SECONDS:
            self._failures = 0
        else:
            await asyncio.sleep(self._back_off())

    def _told(self, lines: list[bytes]) -> list[Observation]:
        """The observations of some lines; what was read before an error counts."""
        told: list[Observation] = []
        try:
            for text in lines:
                if text:
                    self._take(text, told)
        except (Refused, wire.Unreadable):
            self._news.put(told)
            if told:  # It came on, if not far: that is no reason to wait longer and longer.
                self._failures = 0
            raise
        return told

    def _take(self, text: bytes, told: list[Observation]) -> None:
        what, obj, bookmark = wire.line(text, self.kind, self._log)
        if what == "BOOKMARK":
            self._version = bookmark or self._version
        elif obj is not None:
            self._version = obj.metadata.resource_version or self._version
            if what == "DELETED":
                self._known.pop(obj.key, None)
                told.append(Deleted(obj))
            elif what == "ADDED":
                self._known[obj.key] = obj
                told.append(Added(obj))
            elif what == "MODIFIED":
                self._known[obj.key] = obj
                told.append(Updated(obj))
            else:
                raise wire.Unreadable(f"the watch sent an event of type {what!r}")


def _is_same(old: KubeObject, new: KubeObject) -> bool:
    version = new.metadata.resource_version
    return bool(version) and version == old.metadata.resource_version and old.uid == new.uid
