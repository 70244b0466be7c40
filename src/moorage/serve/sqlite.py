"""The journal in SQLite: one file, one row per object, group commits.

Each commit is flushed to the disk before writes are acknowledged, so acknowledged writes survive
`kill -9` and power failures. Changes that arrive during a commit form the next one: a thousand
concurrent creates share a few flushes.
"""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from moorage.errors import InputError
from moorage.serve.store import JournalRow

# After a crash, versions continue beyond any that clients may have seen but were not written.
VERSION_GAP = 1_000_000
FORMAT = 1

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
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                folder / "moorage.db", timeout=0.5, check_same_thread=False, isolation_level=None
            )
            self._database.execute("PRAGMA locking_mode=EXCLUSIVE")  # One server per folder.
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{folder}: cannot be used to store data: {reason}") from None
        self._changed = threading.Condition()
        self._rows: list[JournalRow] = []
        self._closing = False
        self._thread: threading.Thread | None = None
        self._notify: Callable[[int, Exception | None], None] = lambda version, failure: None

    def load(self) -> tuple[list[JournalRow], int, int]:
        """All objects, the last version written, and the version to continue from."""
        facts = dict(self._database.execute("SELECT name, value FROM facts"))
        if facts.get("format", FORMAT) != FORMAT:
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
        self._database.execute(_SET_FACT, ("clean", 1))
        self._database.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._rows or self._closing)
                rows, self._rows = self._rows, []
            if not rows:
                return
            try:
                self._commit(rows)
            except sqlite3.Error as error:
                # These changes are not acknowledged, and no later ones either.
                self._notify(0, error)
                return
            self._notify(rows[-1].version, None)

    def _commit(self, rows: list[JournalRow]) -> None:
        with self._database:
            self._database.execute("BEGIN")
            # Only the last change of each object counts: an earlier one must not undo a deletion.
            latest = {(row.storage_key, row.namespace, row.name): row for row in rows}
            put = [
                (*key, row.version, row.body) for key, row in latest.items() if row.body is not None
            ]
            self._database.executemany(_PUT, put)
            deleted = [key for key, row in latest.items() if row.body is None]
            self._database.executemany(_DELETE, deleted)
            self._set_facts(version=rows[-1].version)

    def _set_facts(self, **facts: int) -> None:
        self._database.executemany(_SET_FACT, list(facts.items()))
