"""The store: versions, change logs, snapshots of earlier versions, and the journal."""

import asyncio
import itertools
import sqlite3
import time
from random import Random

import pytest

from moorage.cluster.api_server import ApiServer
from moorage.cluster.resources import CONFIG_MAPS, EVENTS, EVENTS_V1, PODS
from moorage.cluster.status_errors import (
    AlreadyExistsError,
    ConflictError,
    ExpiredError,
    NotFoundError,
    TooLargeError,
    UnavailableError,
)
from moorage.cluster.store import LOG_BYTES, OBJECT_LIMIT
from moorage.errors import InputError
from moorage.serve.journaled_store import open_store
from moorage.serve.rest import lists, requests
from moorage.serve.sqlite import VERSION_GAP, SqliteJournal


def make_store(journal=None, log_size=100):
    uids = itertools.count(1)
    return open_store(
        clock=lambda: "2026-01-01T00:00:00Z",
        uid=lambda: f"uid-{next(uids)}",
        journal=journal,
        log_size=log_size,
    )


def cm(name="a", namespace="default", **data):
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


@pytest.fixture
def store():
    return make_store()


def listed(store):
    return [stored.object for _, stored in store.snapshot(CONFIG_MAPS)]


def names(found):
    return [obj["metadata"]["name"] for obj in found]


def test_create_sets_uid_timestamp_and_version(store):
    first, second = store.create(CONFIG_MAPS, cm("a")), store.create(CONFIG_MAPS, cm("b"))
    assert first["metadata"]["uid"] == "uid-1"
    assert first["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert (
        int(second["metadata"]["resourceVersion"]) == int(first["metadata"]["resourceVersion"]) + 1
    )
    assert listed(store) == [first, second]


def test_names_are_unique_per_namespace_and_resource(store):
    store.create(CONFIG_MAPS, cm("a"))
    store.create(CONFIG_MAPS, cm("a", "other"))
    store.create(PODS, cm("a"))
    with pytest.raises(AlreadyExistsError, match='configmaps "a" already exists'):
        store.create(CONFIG_MAPS, cm("a"))
    assert len(store.snapshot(CONFIG_MAPS, "other")) == 1


def test_unknown_fields_are_kept(store):
    odd = cm("a") | {"spec": {"deep": [{"x": None, "y": [1, 2.5, "z", True]}]}}
    store.create(CONFIG_MAPS, odd)
    assert store.get(CONFIG_MAPS, "default", "a")["spec"] == odd["spec"]


def test_replace_requires_the_expected_version(store):
    api = ApiServer(store, now=lambda: 0.0, random=Random(1))
    first = api.create(CONFIG_MAPS, cm("a"))
    version = first["metadata"]["resourceVersion"]
    changed = {"metadata": {"namespace": "default", "name": "a"}, "data": {"x": "1"}}
    api.replace(CONFIG_MAPS, changed, expect_version=version)
    with pytest.raises(ConflictError, match="the object has been modified"):
        api.replace(CONFIG_MAPS, changed, expect_version=version)
    with pytest.raises(NotFoundError):
        store.update(CONFIG_MAPS, cm("b"))


def test_update_without_a_difference_has_no_event(store):
    first = store.create(CONFIG_MAPS, cm("a", x="1"))
    changes = []
    store.subscribe(changes.append)
    assert store.update(CONFIG_MAPS, {**first, "data": {"x": "1"}}) is first
    assert (store.version, changes) == (int(first["metadata"]["resourceVersion"]), [])


def test_deletion_has_its_own_version(store):
    first = store.create(CONFIG_MAPS, cm("a"))
    last = store.delete(CONFIG_MAPS, "default", "a")
    assert int(last["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    with pytest.raises(NotFoundError):
        store.delete(CONFIG_MAPS, "default", "a")


def test_subscribers_get_every_change_with_the_object_before(store):
    changes = []
    end = store.subscribe(changes.append)
    first = store.create(CONFIG_MAPS, cm("a"))
    second = store.update(CONFIG_MAPS, {**first, "data": {"x": "1"}})
    store.delete(CONFIG_MAPS, "default", "a")
    end()
    store.create(CONFIG_MAPS, cm("b"))
    assert [(each.type, each.before) for each in changes] == [
        ("ADDED", None),
        ("MODIFIED", first),
        ("DELETED", second),
    ]
    assert [each.version for each in changes] == sorted(each.version for each in changes)


def test_changes_since_a_version(store):
    first = store.create(CONFIG_MAPS, cm("a"))
    store.create(PODS, cm("p"))
    store.create(CONFIG_MAPS, cm("b"))
    since = int(first["metadata"]["resourceVersion"])
    assert names(each.object for each in store.log(CONFIG_MAPS).since(since)) == ["b"]


def test_change_logs_are_limited_per_resource():
    store = make_store(log_size=3)
    begin = store.version
    store.create(PODS, cm("p"))
    for number in range(10):
        store.create(CONFIG_MAPS, cm(f"c{number}"))
    with pytest.raises(ExpiredError, match="too old resource version"):
        store.log(CONFIG_MAPS).since(begin)
    assert names(each.object for each in store.log(PODS).since(begin)) == ["p"]
    assert len(store.log(CONFIG_MAPS).since(store.version - 3)) == 3


def test_change_logs_are_limited_by_their_bytes(store):
    begin = store.version
    store.create(PODS, cm("p"))
    store.create(CONFIG_MAPS, cm("big"))
    for number in range(150):
        store.update(CONFIG_MAPS, cm("big", a=str(number % 10) * 1_000_000))
        log = store.log(CONFIG_MAPS)
        assert log.since(store.version - 1)[0].object is store.get(CONFIG_MAPS, "default", "big")
    with pytest.raises(ExpiredError, match="too old resource version"):
        log.since(begin)
    kept = log.since(log.floor)
    assert 10 <= len(kept) <= LOG_BYTES / 2_000_000
    assert log.bytes == sum(change.size for change in kept)
    assert names(each.object for each in store.log(PODS).since(begin)) == ["p"]


def test_snapshot_of_an_earlier_version(store):
    store.create(CONFIG_MAPS, cm("a", x="1"))
    store.create(CONFIG_MAPS, cm("b"))
    then = store.version
    was = listed(store)
    store.update(CONFIG_MAPS, {**was[0], "data": {"x": "2"}})
    store.delete(CONFIG_MAPS, "default", "b")
    store.create(CONFIG_MAPS, cm("c"))
    assert [stored.object for _, stored in store.snapshot(CONFIG_MAPS, None, then)] == was
    assert names(listed(store)) == ["a", "c"]


@pytest.mark.parametrize("seed", range(20))
def test_scans_of_all_versions_and_ranges(seed):
    """Against the whole content of every version, which is kept here."""
    random, store = Random(seed), make_store(log_size=1000)
    content, history = {}, {store.version: {}}
    namespaces = ("a", "a-b", "b")
    for _ in range(60):
        key = random.choice(namespaces), random.choice("wxyz")
        if key not in content:
            content[key] = store.create(CONFIG_MAPS, cm(key[1], key[0]))
        elif random.random() < 0.5:
            changed = cm(key[1], key[0], x=str(store.version))
            content[key] = store.update(CONFIG_MAPS, content[key] | {"data": changed["data"]})
        else:
            store.delete(CONFIG_MAPS, *key)
            del content[key]
        history[store.version] = dict(content)
        version, at = random.choice(list(history.items()))
        namespace = random.choice((None, *namespaces))
        after = random.choice((None, (random.choice(namespaces), random.choice("wxyz"))))
        expected = [
            (key, obj)
            for key, obj in sorted(at.items())
            if namespace in (None, key[0]) and (after is None or key > after)
        ]
        scan = store.scan(CONFIG_MAPS, namespace, version, after)
        assert [(key, stored.object) for key, stored in scan.items] == expected
        assert scan.length == len(expected)


def test_time_of_a_list_is_linear_in_its_length():
    store = make_store(log_size=100_000)
    for number in range(30_000):
        store.create(CONFIG_MAPS, cm(f"c{number}"))
    selector = lists.object_selector(CONFIG_MAPS, requests.list_options({}))
    names, token = [], ""
    began = time.process_time()
    while token or not names:
        store.update(CONFIG_MAPS, cm("c5", x=token))
        options = requests.list_options({"limit": "100", "continue": token})
        page = lists.read_page(store, CONFIG_MAPS, "default", selector, options)
        names += [stored.object["metadata"]["name"] for stored in page.items]
        assert page.remaining == (30_000 - len(names) or None)
        token = page.continue_token
    assert len(set(names)) == 30_000
    assert time.process_time() - began < 10  # a copy and a sort for each page: 30 seconds


def test_events_of_two_groups_share_one_storage(store):
    store.create(EVENTS, cm("e"))
    assert store.get(EVENTS_V1, "default", "e") is store.get(EVENTS, "default", "e")


def test_what_is_too_large_does_not_get_in(store):
    before = store.version
    with pytest.raises(TooLargeError):
        store.create(CONFIG_MAPS, cm("a", x="x" * OBJECT_LIMIT))
    assert (store.version, store.count(CONFIG_MAPS)) == (before, 0)


# On disk.


def write(folder, change, *, clean=True):
    """Run a change on the store of a folder, then close it or simulate a crash."""

    async def run():
        store = make_store(SqliteJournal(folder))
        store.start()
        result = change(store)
        await store.wait_until_durable()
        assert store.durable_version == store.version
        if clean:
            store.close()
        else:
            store._journal._database.close()  # As after a crash: nothing more is written.
        return result

    return asyncio.run(run())


def fill(store):
    store.create(CONFIG_MAPS, cm("a", x="1"))
    store.create(CONFIG_MAPS, cm("b"))
    store.update(CONFIG_MAPS, cm("a", x="2") | {"metadata": listed(store)[0]["metadata"]})
    store.delete(CONFIG_MAPS, "default", "b")
    store.create(CONFIG_MAPS, cm("c"))
    return listed(store), store.version


def test_all_objects_are_loaded_again(tmp_path):
    objects, version = write(tmp_path, fill)
    again, version_again = write(tmp_path, lambda store: (listed(store), store.version))
    assert (again, version_again) == (objects, version)


def test_versions_have_a_gap_after_a_crash(tmp_path):
    _, version = write(tmp_path, fill, clean=False)
    assert write(tmp_path, lambda store: store.version) == version + VERSION_GAP
    assert write(tmp_path, lambda store: store.version) == version + VERSION_GAP


def test_watches_resume_after_a_clean_stop_only(tmp_path):
    _, version = write(tmp_path, fill)
    resumed = write(tmp_path, lambda store: list(store.log(CONFIG_MAPS).since(version)))
    assert resumed == []
    write(tmp_path, lambda store: store.create(CONFIG_MAPS, cm("d")), clean=False)
    with pytest.raises(ExpiredError):
        write(tmp_path, lambda store: store.log(CONFIG_MAPS).since(version + 1))


def test_concurrent_writes_share_commits(tmp_path):
    commits = []

    class Counting(SqliteJournal):
        def _commit(self, rows):
            commits.append(len(rows))
            super()._commit(rows)

    async def run():
        store = make_store(Counting(tmp_path))
        store.start()

        async def create(number):
            store.create(CONFIG_MAPS, cm(f"c{number}"))
            await store.wait_until_durable()

        await asyncio.gather(*(create(number) for number in range(1000)))
        store.close()

    asyncio.run(run())
    assert sum(commits) == 1000
    assert len(commits) < 100


def test_failed_disk_write_acknowledges_nothing(tmp_path):
    class Failing(SqliteJournal):
        def _commit(self, rows):
            raise sqlite3.OperationalError("disk is full")

    async def run():
        store = make_store(Failing(tmp_path))
        store.start()
        store.create(CONFIG_MAPS, cm("a"))
        with pytest.raises(UnavailableError, match="cannot be written: disk is full"):
            await store.wait_until_durable()
        with pytest.raises(UnavailableError, match="cannot be written: disk is full"):
            await store.wait_until_durable()  # And so it stays.
        store.close()

    asyncio.run(run())


def test_data_folder_has_one_server_at_a_time(tmp_path):
    store = make_store(SqliteJournal(tmp_path))
    with pytest.raises(InputError, match="cannot be used to store data"):
        make_store(SqliteJournal(tmp_path))
    store.close()
