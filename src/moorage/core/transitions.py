"""TransitionTable: the states of something, and the events that lead from one to another.

The code reads the next state from the table, so a step that the table does not have raises at
once. `docs/architecture.md` shows the same tables; a test compares the two.
"""

from collections.abc import Iterable

from moorage.errors import InvariantError


class TransitionTable(dict[tuple[str, str], str]):
    """(state, event) -> next state; rows are (state, event, next state, reason)."""

    def __init__(self, name: str, rows: Iterable[tuple[str, str, str, str]]) -> None:
        self.name = name
        self.rows = tuple(rows)
        super().__init__({(state, event): after for state, event, after, _ in self.rows})
        assert len(self) == len(self.rows), f"{name}: a state has one event twice"

    def __missing__(self, key: tuple[str, str]) -> str:
        state, event = key
        raise InvariantError(f"{self.name}: no event {event!r} in state {state!r}")
