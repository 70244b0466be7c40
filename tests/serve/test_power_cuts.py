"""The power fails at any moment: what was acknowledged is on the disk."""

import asyncio
import itertools
import os
from random import Random

import pytest

from moorage.cluster.resources import CONFIG_MAPS
from moorage.errors import InputError
from moorage.serve.journaled_store import open_store
from moorage.serve.sqlite import SqliteJournal

from .volatile_disk import VolatileDisk

SEEDS = range(int(os.environ.get("MOORAGE_SEEDS", "4")))


def make_store(folder):
    uids = itertools.count(1)
    journal = SqliteJournal(folder)
    return open_store(
        clock=lambda: "2026-01-01T00:00:00Z", uid=lambda: str(next(uids)), journal=journal
    )


def cm(name, text):
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"x": text}}


def contents(store):
    return {name: stored.object["data"]["x"] for (_, name), stored in store.snapshot(CONFIG_MAPS)}


class Writer:
    """Creates, replaces and deletes objects; cuts the power now and then."""

    def __init__(self, folder, disk, seed):
        self.folder, self.disk, self.random = folder, disk, Random(seed)
        # The text of each object, None if it is deleted: now, and what it may be after a power cut.
        self.texts = dict.fromkeys(f"c{i}" for i in range(12))
        self.possible = {}
        self.losses, self.cuts = [], 0

    async def run(self, store, steps=40):
        store.start()
        for step in range(steps):
            self.possible = {name: {text} for name, text in self.texts.items()}
            self.cut()
            for _ in range(self.random.randint(1, 3)):
                self.change(store, f"{step}-" + "x" * self.random.choice((1, 500, 9000)))
                self.cut()
            await store.wait_until_durable()
        store.close()

    def change(self, store, text):
        name = self.random.choice(list(self.texts))
        if self.texts[name] is None:
            store.create(CONFIG_MAPS, cm(name, text))
        elif self.random.random() < 0.3:
            store.delete(CONFIG_MAPS, "default", name)
            text = None
        else:
            store.update(CONFIG_MAPS, cm(name, text))
        self.texts[name] = text
        self.possible[name].add(text)

    def cut(self):
        """Start again on what a power cut may leave."""
        self.cuts += 1
        folder = self.folder / f"cut-{self.cuts}"
        folder.mkdir()
        for name, content in self.disk.after_power_cut(self.random).items():
            (folder / name).write_bytes(content)
        try:
            store = make_store(folder)
        except InputError as error:
            self.losses.append(str(error))
            return
        found = contents(store)
        store.close()
        for name, possible in self.possible.items():
            if found.get(name) not in possible:
                self.losses.append(f"cut {self.cuts}: {name} is {found.get(name)!r:.40}")


def losses(tmp_path, seed, *settings):
    with (disk := VolatileDisk()).in_use():
        store = make_store(tmp_path / "data")
    for setting in settings:
        store._journal._database.execute(setting)
    writer = Writer(tmp_path, disk, seed)
    asyncio.run(writer.run(store))
    return writer.losses


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_acknowledged_is_lost(tmp_path, seed):
    # Every second time the log of changes moves to the database after every few of them.
    pages = 1000 if seed % 2 else 10
    assert losses(tmp_path, seed, f"PRAGMA wal_autocheckpoint={pages}") == []


@pytest.mark.parametrize("setting", ["OFF", "NORMAL"])
def test_missing_syncs_are_found(tmp_path, setting):
    """The test of the test: in WAL mode NORMAL does not sync at every commit, OFF never."""
    assert losses(tmp_path, 0, f"PRAGMA synchronous={setting}") != []
