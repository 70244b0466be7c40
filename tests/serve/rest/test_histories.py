"""Concurrent clients of `serve`: every history can be explained by one order of changes."""

import os
import threading
from copy import deepcopy
from itertools import count
from random import Random

import pytest

from moorage.serve.sqlite import SqliteJournal

from .history import CREATE, DELETE, GET, LIST, UPDATE, Event, History, Operation

SEEDS = range(int(os.environ.get("MOORAGE_SEEDS", "2")))
PATH = "/api/v1/namespaces/default/configmaps"
NAMES = ("a", "b", "c")
CLIENTS, REQUESTS = 4, 30
WATCH_SECONDS = 1


class Client:
    """Sends random requests, one after the other."""

    def __init__(self, server, clock, seed):
        self.server, self.clock, self.random = server, clock, Random(seed)
        self.operations = []
        self.versions = {}  # The latest that it has seen, by name.

    def run(self):
        for number in range(REQUESTS):
            verb = self.random.choice((CREATE, UPDATE, UPDATE, DELETE, GET, LIST))
            name = "" if verb == LIST else self.random.choice(NAMES)
            op = Operation(verb, name, begin=next(self.clock))
            response = self.send(op, f"{self.random.random()}-{number}")
            op.end, op.status = next(self.clock), response.status
            self.take(op, response.json)
            self.operations.append(op)

    def send(self, op, text):
        body = {"metadata": {"name": op.name}, "data": {"x": text}}
        path = f"{PATH}/{op.name}"
        if op.verb == CREATE:
            return self.server.post(PATH, body)
        if op.verb == DELETE:
            return self.server.delete(path)
        if op.verb == LIST:
            return self.server.get(PATH)
        if op.verb == GET:
            return self.server.get(path)
        if self.random.random() < 0.3:
            media = "application/merge-patch+json"
            return self.server.patch(path, {"data": {"x": text}}, media)
        op.requires = body["metadata"]["resourceVersion"] = self.versions.get(op.name, "1")
        return self.server.put(path, body)

    def take(self, op, got):
        if op.status >= 300:
            return
        if op.verb == LIST:
            op.version = int(got["metadata"]["resourceVersion"])
            op.found = {each["metadata"]["name"]: each["data"]["x"] for each in got["items"]}
        elif op.verb == DELETE:
            op.uid = got["details"]["uid"]
        else:
            self.versions[op.name] = got["metadata"]["resourceVersion"]
            op.version, op.found = int(self.versions[op.name]), got["data"]["x"]


class Watcher:
    """Watches from a version, and again from the last one that it has seen."""

    def __init__(self, server, start, rounds):
        self.server, self.start, self.rounds = server, start, rounds
        self.events = []

    def run(self):
        for _ in range(self.rounds):
            since = self.events[-1].version if self.events else self.start
            query = f"watch=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={since}"
            self.events += [event(line) for line in self.server.watch(f"{PATH}?{query}")]


def event(line):
    obj = line["object"]
    meta = obj["metadata"]
    version = int(meta["resourceVersion"])
    return Event(line["type"], meta["name"], version, obj["data"]["x"], meta["uid"])


def run_all(parts):
    threads = [threading.Thread(target=part.run) for part in parts]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def record(server, seed):
    clock = count(1)
    start = int(server.get(PATH).json["metadata"]["resourceVersion"])
    clients = [Client(server, clock, f"{seed} {number}") for number in range(CLIENTS)]
    watchers = [Watcher(server, start, rounds) for rounds in (1, 2)]
    run_all([*clients, *watchers])
    everything = Watcher(server, start, 1)
    everything.run()
    operations = [op for client in clients for op in client.operations]
    watches = [(start, watcher.events) for watcher in watchers]
    return History(everything.events, operations, watches)


@pytest.mark.parametrize("seed", SEEDS)
def test_histories(serve, tmp_path, seed):
    server = serve(journal=SqliteJournal(tmp_path)) if seed % 2 else serve()
    history = record(server, seed)
    assert len(history.log) > CLIENTS * REQUESTS / 8
    assert history.check() == []


def repeat(history):
    history.watches[0][1].insert(3, history.watches[0][1][2])


def skip(history):
    del history.watches[0][1][2]


def reorder(history):
    events = history.watches[0][1]
    events[2:4] = events[3], events[2]


def lose(history):
    lost = history.log.pop(4)
    for _, events in history.watches:
        events.remove(lost)


def stale_read(history):
    first, second = (e for e in history.log if e.name == history.log[0].name)
    read = Operation(GET, first.name, 10_000, 10_001, 200, version=first.version, found=first.text)
    assert second.version > first.version
    history.operations.append(read)


def lost_update(history):
    op = next(op for op in history.operations if op.requires and op.status == 200)
    op.requires = "1"


def wrong_list(history):
    op = next(op for op in history.operations if op.verb == LIST and op.found)
    op.found.popitem()


def wrong_conflict(history):
    name = history.log[-1].name
    exists = history.log[-1].type != "DELETED"
    status = 404 if exists else 409
    history.operations.append(Operation(CREATE, name, 10_000, 10_001, status))


@pytest.fixture(scope="module")
def recorded():
    """A history of one client that needs no server: three objects, each created and changed."""
    log, operations, clock = [], [], count(1)
    for version, (verb, name) in enumerate(
        [(verb, name) for name in NAMES for verb in (CREATE, UPDATE)], start=2
    ):
        kind = "ADDED" if verb == CREATE else "MODIFIED"
        log.append(Event(kind, name, version, f"text {version}", f"uid {name}"))
        requires = str(version - 1) if verb == UPDATE else ""
        op = Operation(verb, name, next(clock), next(clock), 200, requires)
        op.version, op.found = version, f"text {version}"
        operations.append(op)
    read = Operation(LIST, "", next(clock), next(clock), 200, version=7)
    read.found = {"a": "text 3", "b": "text 5", "c": "text 7"}
    return History(log, [*operations, read], [(1, list(log)), (3, log[2:])])


def test_a_right_history(recorded):
    assert deepcopy(recorded).check() == []


@pytest.mark.parametrize(
    "mistake",
    [repeat, skip, reorder, lose, stale_read, lost_update, wrong_list, wrong_conflict],
)
def test_wrong_histories_are_found(recorded, mistake):
    history = deepcopy(recorded)
    mistake(history)
    assert history.check() != []
