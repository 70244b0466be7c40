"""Check the database of a data folder, and save what can be read of a damaged one.

Damaged pages end a scan of the table. So each kind is read from its first object and from its last
one, and only the objects between two damaged places are lost. The damaged files are kept.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from moorage.errors import InputError
from moorage.serve.journaled_store import JournalRow, decode_row
from moorage.serve.sqlite import DATABASE, VERSION_GAP, SqliteJournal

_COLUMNS = "version, shelf, namespace, name, body"
_SUFFIXES = ("", "-wal", "-shm")  # The files of one database.


@dataclass(slots=True)
class CheckedDatabase:
    """The objects that can be read, and what is wrong with the others."""

    rows: list[JournalRow] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    kept: Path | None = None  # Where the damaged database is now.


def check(folder: Path) -> CheckedDatabase:
    """Check a database; replace a damaged one by what can be read. Raises InputError."""
    path = folder / DATABASE
    if not path.is_file():
        raise InputError(f"{folder}: there is no {DATABASE} in this folder")
    try:
        found, version = _read(path)
    except sqlite3.Error as error:
        raise InputError(f"{path}: nothing can be read: {error}") from None
    if found.problems:
        found.kept = _replace(folder, found.rows, version)
    return found


def _read(path: Path) -> tuple[CheckedDatabase, int]:
    """The readable rows of a database, and the last version that is known."""
    found = CheckedDatabase()
    database = sqlite3.connect(path, timeout=0.5, isolation_level=None)
    with contextlib.closing(database):
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute("BEGIN EXCLUSIVE")  # Raises if a server uses it.
        database.execute("ROLLBACK")
        with _noted(found):
            for (line,) in database.execute("PRAGMA integrity_check(10)"):
                if line != "ok":
                    found.problems.append(" ".join(str(line).split()))
        facts: dict[str, int] = {}
        with _noted(found):
            facts = dict(database.execute("SELECT name, value FROM facts"))
        for row in _rows(database, found):
            try:
                decode_row(row)
            except InputError as error:
                found.problems.append(str(error))
            else:
                found.rows.append(row)
    versions = [row.version for row in found.rows]
    return found, max([1, int(facts.get("version", 1)), *versions])


def _rows(database: sqlite3.Connection, found: CheckedDatabase) -> list[JournalRow]:
    """Every row that can be read, once."""
    rows: dict[tuple[str, str, str], JournalRow] = {}
    kinds: dict[str, None] = {}

    def read(order: str, kind: str | None = None) -> bool:
        where = "" if kind is None else "WHERE shelf = ?"
        by = f"shelf {order}, namespace {order}, name {order}"
        query = f"SELECT {_COLUMNS} FROM objects {where} ORDER BY {by}"
        try:
            for each in database.execute(query, () if kind is None else (kind,)):
                row = JournalRow(*each)
                rows[row.storage_key, row.namespace, row.name] = row
                kinds[row.storage_key] = None
        except sqlite3.DatabaseError as error:
            if str(error) not in found.problems:
                found.problems.append(str(error))
            return False
        return True

    if not read("ASC"):
        read("DESC")
        for kind in list(kinds):
            if not read("ASC", kind):
                read("DESC", kind)
    return list(rows.values())


@contextlib.contextmanager
def _noted(found: CheckedDatabase) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        found.problems.append(str(error))


def _replace(folder: Path, rows: list[JournalRow], version: int) -> Path:
    """Write a new database with these rows; returns where the old one is kept."""
    fresh = folder / "rescued"
    for suffix in _SUFFIXES:
        (fresh / f"{DATABASE}{suffix}").unlink(missing_ok=True)
    journal = SqliteJournal(fresh)
    journal.load()
    for row in rows:
        journal.write(row)
    # Versions continue beyond any that clients may have seen.
    journal.write(JournalRow(version + VERSION_GAP, "", "", "", None))
    journal.close()
    number = 1
    while (kept := folder / f"{DATABASE}.damaged-{number}").exists():
        number += 1
    for suffix in _SUFFIXES:
        old = folder / f"{DATABASE}{suffix}"
        if old.exists():
            old.rename(f"{kept}{suffix}")
    (fresh / DATABASE).rename(folder / DATABASE)
    for suffix in _SUFFIXES[1:]:
        (fresh / f"{DATABASE}{suffix}").unlink(missing_ok=True)
    fresh.rmdir()
    return kept
