"""JournaledStore: a store whose journal makes changes durable, a little after they are made."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import NamedTuple, Protocol, cast

from moorage.api import documents
from moorage.api.documents import DocumentError
from moorage.cluster.status_errors import UnavailableError
from moorage.cluster.store import DELETED, LOG_SIZE, Change, Store, StoredObject, key_of
from moorage.controllers.objects import Object
from moorage.errors import InputError


class JournalRow(NamedTuple):
    """One change in a journal; a deletion has no body."""

    version: int
    storage_key: str
    namespace: str
    name: str
    body: bytes | None


def decode_row(row: JournalRow) -> Object:
    """The object of a row; raises InputError if it is none, or has another name."""
    at = f"{row.storage_key} {row.namespace}/{row.name}".replace(" /", " ")
    if not isinstance(row.body, bytes) or not isinstance(row.version, int):
        raise InputError(f"{at}: has no body or no version")
    try:
        obj = documents.decode_json(row.body)
    except DocumentError as error:
        raise InputError(f"{at}: is not JSON: {error.problem}") from None
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(meta, dict):
        raise InputError(f"{at}: is no object with metadata")
    if (meta.get("namespace", ""), meta.get("name")) != (row.namespace, row.name):
        raise InputError(f"{at}: metadata has another name")
    return cast(Object, obj)


class StoreJournal(Protocol):
    """Makes changes durable; calls `notify(version, failure)`, perhaps from another thread."""

    def load(self) -> tuple[list[JournalRow], int, int]:
        """All objects, the last version written, and the version to continue from."""

    def damaged(self, error: Exception) -> InputError:
        """Close a journal with content that cannot be used; returns the error."""

    def start(self, notify: Callable[[int, Exception | None], None]) -> None: ...
    def write(self, row: JournalRow) -> None: ...
    def close(self) -> None: ...


class JournaledStore(Store):
    """A store that writes its changes to a journal."""

    def __init__(
        self,
        *,
        clock: Callable[[], str],
        uid: Callable[[], str],
        journal: StoreJournal,
        log_size: int = LOG_SIZE,
    ) -> None:
        super().__init__(clock=clock, uid=uid, log_size=log_size)
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._journal = journal
        rows, self._floor, self.version = journal.load()
        self.durable_version = self.version
        for row in rows:
            try:
                stored = StoredObject(decode_row(row), row.body or b"", row.version)
            except InputError as error:
                raise journal.damaged(error) from None
            self._objects.setdefault(row.storage_key, {})[row.namespace, row.name] = stored

    async def wait_until_durable(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self.version > self.durable_version:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((self.version, future))
            await future

    def start(self) -> None:
        loop = asyncio.get_running_loop()

        def notify(version: int, failure: Exception | None) -> None:
            with contextlib.suppress(RuntimeError):  # The loop was closed.
                loop.call_soon_threadsafe(self._set_durable, version, failure)

        self._journal.start(notify)

    def close(self) -> None:
        self._journal.close()

    def _record(self, change: Change) -> None:
        body = None if change.type == DELETED else change.stored.body
        key = key_of(change.object)
        self._journal.write(JournalRow(self.version, change.resource.storage_key, *key, body))

    def _set_durable(self, version: int, failure: Exception | None) -> None:
        # A journal that failed tries again, so a later success ends the failure.
        self.failure = None
        if failure is not None:
            self.failure = UnavailableError(f"the journal cannot be written: {failure}")
        self.durable_version = max(version, self.durable_version)
        still_waiting = []
        for awaited, future in self._waiting:
            if future.done():
                continue
            if self.failure is not None:
                future.set_exception(self.failure)
            elif awaited <= self.durable_version:
                future.set_result(None)
            else:
                still_waiting.append((awaited, future))
        self._waiting = still_waiting
        self._notify_durable()


def open_store(
    *,
    clock: Callable[[], str],
    uid: Callable[[], str],
    journal: StoreJournal | None = None,
    log_size: int = LOG_SIZE,
) -> Store:
    """A store on a journal, or in memory."""
    if journal is None:
        return Store(clock=clock, uid=uid, log_size=log_size)
    return JournaledStore(clock=clock, uid=uid, journal=journal, log_size=log_size)
