"""The database: permissions, a full disk, damage, and what can be saved."""

import asyncio
import itertools
import sqlite3
import stat

import pytest

from moorage.cluster.resources import CONFIG_MAPS
from moorage.cluster.status_errors import UnavailableError
from moorage.errors import InputError
from moorage.serve import rescue, sqlite
from moorage.serve.journaled_store import open_store
from moorage.serve.sqlite import DATABASE, SqliteJournal


def make_store(folder):
    uids = itertools.count(1)
    journal = SqliteJournal(folder)
    return open_store(
        clock=lambda: "2026-01-01T00:00:00Z", uid=lambda: str(next(uids)), journal=journal
    )


def cm(name, **data):
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


def names(store):
    return {name for (_, name), _ in store.snapshot(CONFIG_MAPS)}


def fill(folder, count=3, size=10):
    async def run():
        store = make_store(folder)
        store.start()
        for i in range(count):
            store.create(CONFIG_MAPS, cm(f"c{i:04}", x="x" * size))
        await store.wait_until_durable()
        store.close()

    asyncio.run(run())


def execute(folder, statement, *values):
    with sqlite3.connect(folder / DATABASE) as database:
        database.execute(statement, values)
    database.close()


def test_only_the_owner_may_read(tmp_path):
    folder = tmp_path / "data"
    store = make_store(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    store.close()
    (folder / DATABASE).chmod(0o644)  # As earlier versions left it.
    make_store(folder).close()
    assert stat.S_IMODE((folder / DATABASE).stat().st_mode) == 0o600


def test_folder_of_others_keeps_its_permissions(tmp_path):
    tmp_path.chmod(0o755)
    make_store(tmp_path).close()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_writes_resume_when_a_full_disk_has_room(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "RETRY_SECONDS", 0.02)

    async def run():
        store = make_store(tmp_path)
        store.start()
        store.create(CONFIG_MAPS, cm("before"))
        await store.wait_until_durable()
        database = store._journal._database
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count={pages}")
        store.create(CONFIG_MAPS, cm("during", x="x" * 100_000))
        with pytest.raises(UnavailableError, match="database or disk is full"):
            await store.wait_until_durable()
        # What may still be lost is not shown.
        shown = {key[1] for key, _ in store.snapshot(CONFIG_MAPS, None, store.readable_version)}
        assert shown == {"before"}
        store.create(CONFIG_MAPS, cm("after"))
        database.execute("PRAGMA max_page_count=1000000")
        async with asyncio.timeout(30):
            while store.failure is not None:
                await asyncio.sleep(0.01)
        await store.wait_until_durable()
        store.close()

    asyncio.run(run())
    again = make_store(tmp_path)
    assert names(again) == {"before", "during", "after"}
    again.close()


def test_damage_is_one_line_with_advice(tmp_path):
    fill(tmp_path)
    execute(tmp_path, "UPDATE objects SET body = ? WHERE name = 'c0001'", b"{")
    with pytest.raises(InputError) as caught:
        make_store(tmp_path)
    text = str(caught.value)
    assert "default/c0001: is not JSON" in text
    assert f"`moorage serve --data-dir {tmp_path} --check`" in text
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(b"{", "is not JSON", id="half an object"),
        pytest.param(b"\xff", "is not JSON", id="not text"),
        pytest.param(b"{}", "is no object with metadata", id="no metadata"),
        pytest.param(b"[]", "is no object with metadata", id="a list"),
        pytest.param(b'{"metadata": {"name": "x"}}', "has another name", id="another name"),
        pytest.param("text", "has no body", id="a text in the place of bytes"),
    ],
)
def test_bad_rows_are_left_out(tmp_path, body, problem):
    fill(tmp_path)
    execute(tmp_path, "UPDATE objects SET body = ? WHERE name = 'c0001'", body)
    with pytest.raises(InputError, match=problem):
        make_store(tmp_path)
    found = rescue.check(tmp_path)
    assert [problem in each for each in found.problems] == [True]
    store = make_store(tmp_path)
    assert names(store) == {"c0000", "c0002"}
    store.close()
    assert found.kept.is_file()


def test_damaged_page(tmp_path):
    fill(tmp_path, count=200, size=1000)
    file = tmp_path / DATABASE
    with file.open("r+b") as opened:
        size = file.stat().st_size
        opened.seek(size // 2 // 4096 * 4096)
        opened.write(b"\xff" * 4096)
    with pytest.raises(InputError, match="--check"):
        make_store(tmp_path)
    found = rescue.check(tmp_path)
    assert found.problems
    assert 180 <= len(found.rows) < 200
    store = make_store(tmp_path)
    assert len(names(store)) == len(found.rows)
    store.close()
    assert rescue.check(tmp_path).problems == []


def test_versions_continue_after_a_rescue(tmp_path):
    fill(tmp_path)
    store = make_store(tmp_path)
    before = store.version
    store.close()
    execute(tmp_path, "UPDATE objects SET body = ? WHERE name = 'c0001'", b"{")
    rescue.check(tmp_path)
    store = make_store(tmp_path)
    assert store.version > before
    store.close()


def test_nothing_to_save(tmp_path):
    with pytest.raises(InputError, match=r"there is no moorage\.db"):
        rescue.check(tmp_path)
    (tmp_path / DATABASE).write_bytes(b"not a database" * 1000)
    with pytest.raises(InputError, match=r"file is not a database.*--check"):
        make_store(tmp_path)
    with pytest.raises(InputError, match="nothing can be read: file is not a database"):
        rescue.check(tmp_path)


def test_database_in_use_is_not_touched(tmp_path):
    store = make_store(tmp_path)
    with pytest.raises(InputError, match="locked"):
        rescue.check(tmp_path)
    store.close()
