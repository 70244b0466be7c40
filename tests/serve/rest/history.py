"""Histories: what concurrent clients sent and got, checked against one order of all changes.

The log of changes is what a watch from the beginning shows. In its order of versions, everything
has to make sense:

    linearizable   a response fits the state at a moment between its request and its end
    writes         every change in the log is one acknowledged write, and the other way round
    lists          the objects at the list's version, all of them and no others
    watches        the changes after the version where they start: no gap, no repetition, in order
"""

from bisect import bisect_right
from dataclasses import dataclass, field

CREATE, UPDATE, DELETE, GET, LIST = "create", "update", "delete", "get", "list"


@dataclass
class Operation:
    """A request and its response; begin and end are numbers in the order of all of them."""

    verb: str
    name: str
    begin: int
    end: int = 0
    status: int = 0
    # The version that an update requires, "" for any.
    requires: str = ""
    # Of the response: version and text of an object, or of all objects of a list by name.
    version: int = 0
    found: object = None
    uid: str = ""


@dataclass
class Event:
    """A line of a watch."""

    type: str
    name: str
    version: int
    text: str
    uid: str


@dataclass
class History:
    """The log, all operations, and each watch as (version where it starts, events)."""

    log: list[Event]
    operations: list[Operation]
    watches: list[tuple[int, list[Event]]]
    problems: list[str] = field(default_factory=list)

    def check(self):
        """All problems, as texts."""
        versions = [event.version for event in self.log]
        if versions != sorted(set(versions)):
            self.problems.append("the log is out of order")
        self._versions = versions
        self._by_version = {event.version: event for event in self.log}
        self._deletions = {event.uid: event for event in self.log if event.type == "DELETED"}
        self._claimed = set()
        writes = [op for op in self.operations if op.status < 300 and op.verb not in (GET, LIST)]
        for op in writes:
            self._claim(op)
        self._ended = sorted((op.end, op.version) for op in writes)
        self._begun = sorted((op.begin, op.version) for op in writes)
        for op in self.operations:
            self._check_operation(op)
        for event in self.log:
            if event.version not in self._claimed:
                self._problem(event, "is in the log, but no client wrote it")
        for start, events in self.watches:
            self._check_watch(start, events)
        return self.problems

    def _problem(self, subject, text):
        self.problems.append(f"{subject} {text}")

    def _claim(self, op):
        """Find the change of a successful write in the log."""
        if op.verb == DELETE:
            op.version = self._deletions[op.uid].version if op.uid in self._deletions else 0
        event = self._by_version.get(op.version)
        expected = {CREATE: "ADDED", UPDATE: "MODIFIED", DELETE: "DELETED"}[op.verb]
        if event is None or event.type != expected or event.name != op.name:
            self._problem(op, f"is acknowledged, but the log has {event}")
        elif op.verb != DELETE and event.text != op.found:
            self._problem(op, f"returned another object than {event}")
        elif op.version in self._claimed:
            self._problem(op, "has the version of another write")
        self._claimed.add(op.version)

    def _window(self, op):
        """The versions between which the state may have been that an operation met."""
        done = [version for end, version in self._ended if end < op.begin]
        begun = [version for begin, version in self._begun if begin < op.end]
        return max(done, default=0), max(begun, default=0)

    def _states(self, name, low, high):
        """The events that describe an object at any version in a window; None: it is absent."""
        last, states = None, []
        for event in self.log:
            if event.version > high:
                break
            if event.name == name:
                if event.version > low:
                    states.append(last)
                last = None if event.type == "DELETED" else event
        return [*states, last]

    def _check_operation(self, op):
        low, high = self._window(op)
        if op.verb == LIST:
            self._check_list(op, low, high)
        elif op.status < 300 and op.verb != GET:
            if not low < op.version <= high:
                self._problem(op, f"took effect outside of ({low}, {high}]")
            before = self._states(op.name, op.version - 1, op.version - 1)[0]
            is_wrong = op.requires and (before is None or before.version != int(op.requires))
            if is_wrong or (before is None) != (op.verb == CREATE):
                self._problem(op, f"succeeded on {before}")
        else:
            states = self._states(op.name, low, high)
            if not any(self._explains(state, op) for state in states):
                self._problem(op, f"does not fit any of {states}")

    @staticmethod
    def _explains(state, op):
        """Whether a response is right for a state of the object."""
        if state is None:
            return op.status == 404
        if op.verb == GET:
            return (op.status, op.version, op.found) == (200, state.version, state.text)
        is_conflict = op.verb == CREATE or (op.requires and int(op.requires) != state.version)
        return op.status == 409 and is_conflict

    def _check_list(self, op, low, high):
        if not low <= op.version:
            self._problem(op, f"does not have what was written up to {low}")
        expected = {}
        for event in self.log[: bisect_right(self._versions, op.version)]:
            expected[event.name] = None if event.type == "DELETED" else event.text
        expected = {name: text for name, text in expected.items() if text is not None}
        if op.found != expected:
            self._problem(op, f"differs from the state at its version, {expected}")
        if any(event.version > high for event in self.log if event.version <= op.version):
            self._problem(op, "has changes that were not requested yet")

    def _check_watch(self, start, events):
        expected = self.log[bisect_right(self._versions, start) :][: len(events)]
        if events != expected:
            pairs = zip(events, expected, strict=False)
            wrong = next(((got, want) for got, want in pairs if got != want), "the end")
            self._problem(f"the watch from {start}", f"has gaps or repetitions: {wrong}")
