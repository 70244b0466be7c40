"""TransitionTable: the states of something, and the events that lead from one to another.

The code reads the next state from the table, so a step that the table does not have raises at
once. `docs/architecture.md` shows the same tables; a test compares the two.
"""

from collections.abc import Iterable, Iterator

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

    def markdown(self) -> Iterator[str]:
        """The table as lines of Markdown: a state diagram, then a row per transition."""
        yield "```mermaid"
        yield "stateDiagram-v2"
        edges: dict[tuple[str, str], list[str]] = {}
        for state, event, after, _ in self.rows:
            edges.setdefault((state, after), []).append(event)
        for (state, after), events in edges.items():
            yield f"    {_word(state)} --> {_word(after)}: {', '.join(events)}"
        yield "```"
        yield ""
        yield "| state | event | next state | when |"
        yield "|---|---|---|---|"
        for state, event, after, reason in self.rows:
            yield f"| {state} | {event} | {after} | {reason} |"


def _word(state: str) -> str:
    return state.replace(" ", "_")
