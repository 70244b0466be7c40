"""The tables of states: complete in themselves, and shown as they are in docs/architecture.md.

`make tables` (or UPDATE_DOCS=1 pytest tests/core/test_transitions.py) writes the document anew.
"""

import os
from pathlib import Path

import pytest

from moorage.core import binding_cycle, cache, queue_states
from moorage.core.transitions import TransitionTable
from moorage.errors import InvariantError

DOCUMENT = Path(__file__).parents[2] / "docs" / "architecture.md"
TABLES = {
    table.name: (table, first)
    for table, first in (
        (queue_states.QUEUE_TRANSITIONS, queue_states.NEW),
        (cache.CACHE_TRANSITIONS, cache.ABSENT),
        (binding_cycle.BINDING_TRANSITIONS, binding_cycle.RESERVE),
    )
}


def markdown(table):
    """A state diagram, then a row per transition."""
    edges = {}
    for state, event, after, _ in table.rows:
        edges.setdefault((state, after), []).append(event)
    yield from ("```mermaid", "stateDiagram-v2")
    for (state, after), events in edges.items():
        yield f"    {state} --> {after}: {', '.join(events)}"
    yield from ("```", "", "| state | event | next state | when |", "|---|---|---|---|")
    for row in table.rows:
        yield f"| {' | '.join(row)} |"


@pytest.mark.parametrize("name", TABLES)
def test_the_document_shows_the_table(name):
    table, _ = TABLES[name]
    begin, end = f"<!-- states: {name} -->\n", f"<!-- end of states: {name} -->"
    before, _, rest = DOCUMENT.read_text().partition(begin)
    shown, marker, after = rest.partition(end)
    assert marker, f"docs/architecture.md has no markers for {name}"
    drawn = "".join(f"{line}\n" for line in markdown(table))
    if os.environ.get("UPDATE_DOCS"):
        DOCUMENT.write_text(before + begin + drawn + end + after)
    else:
        assert shown == drawn, "out of date: run `make tables`"


@pytest.mark.parametrize("name", TABLES)
def test_every_state_can_be_reached(name):
    table, first = TABLES[name]
    reached = {first}
    for _ in table:
        reached |= {after for (state, _), after in table.items() if state in reached}
    assert reached == {state for row in table.rows for state in (row[0], row[2])}


def test_a_step_that_is_not_in_the_table_raises():
    table = TransitionTable("door", (("open", "close", "closed", "the wind"),))
    assert table["open", "close"] == "closed"
    with pytest.raises(InvariantError, match="door: no event 'close' in state 'closed'"):
        table["closed", "close"]


def test_the_cache_says_what_it_refuses():
    assert not cache.CACHE_ERRORS.keys() & cache.CACHE_TRANSITIONS.keys()
    states = {cache.ABSENT, cache.ASSUMED, cache.BOUND, cache.ADDED}
    events = {cache.ASSUME, cache.FINISH_BINDING, cache.ADD, cache.UPDATE, cache.FORGET}
    steps = {(state, event) for state in states for event in (*events, cache.REMOVE)}
    unlisted = steps - cache.CACHE_ERRORS.keys() - cache.CACHE_TRANSITIONS.keys()
    assert unlisted == {(cache.BOUND, cache.FINISH_BINDING)}  # A binding ends once.
