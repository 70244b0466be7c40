"""The journal in SQLite: one file, one row per object, group commits.

Each commit is flushed to the disk before writes are acknowledged, so acknowledged writes survive
`kill -9` and power failures. Changes that arrive during a commit form the next one: a thousand
concurrent creates share a few flushes. A commit that fails, because the disk is full, is tried
again until it succeeds; changes that arrive meanwhile wait for it.

Only the owner may read the folder and the database: objects can contain secrets.
"""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from moorage.errors import InputError
from moorage.serve.journaled_store import JournalRow

# After a crash, versions continue beyond any that clients may have seen but were not written.
VERSION_GAP = 1_000_000
FORMAT = 1
DATABASE = "moorage.db"
RETRY_SECONDS = 1.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    shelf TEXT, namespace TEXT, name TEXT, version INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (shelf, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
_PUT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM objects WHERE shelf = ? AND namespace = ? AND name = ?"
_SET_FACT = "INSERT OR REPLACE INTO facts VALUES (?, ?)"


class SqliteJournal:
    """Durable storage in one file of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / DATABASE
            path.touch(mode=0o600)
            path.chmod(0o600)  # SQLite gives its other files the same permissions.
            self._database = _connect(path)
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            damaged = isinstance(error, sqlite3.DatabaseError) and not isinstance(
                error, sqlite3.OperationalError
            )
            advice = f"; {_advice(folder)}" if damaged else ""
            raise InputError(f"{folder}: cannot be used to store data: {reason}{advice}") from None
        self._changed = threading.Condition()
        self._rows: list[JournalRow] = []
        self._closing = False
        self._has_failed = False
        self._thread: threading.Thread | None = None
        self._notify: Callable[[int, Exception | None], None] = lambda version, failure: None

    def load(self) -> tuple[list[JournalRow], int, int]:
        """All objects, the last version written, and the version to continue from."""
        try:
            return self._load()
        except sqlite3.DatabaseError as error:
            raise self.damaged(error) from None

    def damaged(self, error: Exception) -> InputError:
        """Close a database with content that cannot be used; returns the error."""
        self._database.close()
        return InputError(f"{self._folder / DATABASE}: {error}; {_advice(self._folder)}")

    def _load(self) -> tuple[list[JournalRow], int, int]:
        facts = dict(self._database.execute("SELECT name, value FROM facts"))
        if facts.get("format", FORMAT) != FORMAT:
            self._database.close()
            raise InputError(
                f"the data folder has format {facts['format']}, this Moorage knows {FORMAT}"
            )
        rows = [
            JournalRow(version, storage_key, namespace, name, body)
            for storage_key, namespace, name, version, body in self._database.execute(
                "SELECT shelf, namespace, name, version, body FROM objects"
            )
        ]
        last = facts.get("version", 1)
        next_version = last if facts.get("clean", 1) else last + VERSION_GAP
        with self._database:
            self._database.execute("BEGIN")
            self._set_facts(format=FORMAT, version=next_version, clean=0)
        return rows, last if next_version == last else next_version, next_version

    def start(self, notify: Callable[[int, Exception | None], None]) -> None:
        """Start the writing thread, which calls `notify` after each commit."""
        self._notify = notify
        self._thread = threading.Thread(target=self._run, name="moorage-journal", daemon=True)
        self._thread.start()

    def write(self, row: JournalRow) -> None:
        """Queue a change for the next commit."""
        with self._changed:
            self._rows.append(row)
            if len(self._rows) == 1:
                self._changed.notify()

    def close(self) -> None:
        """Write the rest and close the file; the next start continues without a gap in versions."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        elif self._rows:
            self._commit(self._rows)
        if not self._has_failed:
            self._database.execute(_SET_FACT, ("clean", 1))
        self._database.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._rows or self._closing)
                rows, self._rows = self._rows, []
            if not rows:
                return
            while not self._try_to_commit(rows):
                with self._changed:
                    if self._closing:
                        return
                    self._changed.wait_for(lambda: self._closing, RETRY_SECONDS)
                    rows, self._rows = [*_latest(rows).values(), *self._rows], []

    def _try_to_commit(self, rows: list[JournalRow]) -> bool:
        try:
            self._commit(rows)
        except sqlite3.Error as error:
            self._has_failed = True
            self._notify(0, error)
            return False
        self._has_failed = False
        self._notify(max(row.version for row in rows), None)
        return True

    def _commit(self, rows: list[JournalRow]) -> None:
        with self._database:
            self._database.execute("BEGIN")
            # Only the last change of each object counts: an earlier one must not undo a deletion.
            latest = _latest(rows)
            put = [
                (*key, row.version, row.body) for key, row in latest.items() if row.body is not None
            ]
            self._database.executemany(_PUT, put)
            deleted = [key for key, row in latest.items() if row.body is None]
            self._database.executemany(_DELETE, deleted)
            self._set_facts(version=max(row.version for row in rows))

    def _set_facts(self, **facts: int) -> None:
        self._database.executemany(_SET_FACT, list(facts.items()))


def _latest(rows: list[JournalRow]) -> dict[tuple[str, str, str], JournalRow]:
    return {(row.storage_key, row.namespace, row.name): row for row in rows}


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=0.5, check_same_thread=False, isolation_level=None)
    try:
        database.execute("PRAGMA locking_mode=EXCLUSIVE")  # One server per folder.
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.executescript(_SCHEMA)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _advice(folder: Path) -> str:
    return f"`moorage serve --data-dir {folder} --check` saves what can be read"
