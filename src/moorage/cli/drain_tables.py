"""A drain on a terminal: a sentence, who goes where, and who does not."""

from collections import Counter
from collections.abc import Iterable, Mapping

from rich.table import Table
from rich.text import Text

from moorage.api import texts
from moorage.cli import output
from moorage.cli.output import Page
from moorage.planning.drained import Drain, Stay

MOST_MOVES = 30


def show(answer: Drain, skipped: Counter[str], *, show_all: bool) -> None:
    """Print what comes of draining nodes."""
    page = Page()
    page.put(_headline(answer))
    moved = [move for move in answer.moves if move.to]
    if moved:
        page.section(f"{texts.count(len(moved), 'pod')} {_verb(len(moved), 'move')}")
        rows = moved if show_all else moved[:MOST_MOVES]
        table = output.items(justify="left")
        for move in rows:
            table.add_row(move.pod, Text(f"{move.source} -> {move.to}", output.DIM))
        page.put(table)
        if len(rows) < len(moved):
            page.note(f"and {len(moved) - len(rows):,} more; -a shows all")
    _reasons(page, "left without a node", _pending(answer))
    output.claims_hint(page, _pending(answer).values())
    _stays(page, "held up by disruption budgets", answer.blocked)
    _stays(page, "lost", answer.lost)
    if answer.evictions:
        page.section(f"{texts.count(len(answer.evictions), 'pod')} had to make room")
        items = output.items(justify="left")
        for each in answer.evictions:
            items.add_row(each.pod, Text(f"for {each.by} on {each.node}", output.DIM))
        page.put(items)
    _stays(page, "not evicted", answer.stays)
    output.skipped(page, skipped)


def _verb(number: int, verb: str) -> str:
    return f"{verb}s" if number == 1 else verb


def _headline(answer: Drain) -> Text:
    moved, pending = len(answer.moves) - len(answer.pending), len(_pending(answer))
    parts = [f"{moved:,} moved"]
    if pending:
        parts.append(f"{pending:,} pending")
    if answer.blocked:
        parts.append(f"{len(answer.blocked):,} held up")
    if answer.lost:
        parts.append(f"{len(answer.lost):,} lost")
    if answer.stays:
        parts.append(f"{len(answer.stays):,} not evicted")
    rounds = texts.count(answer.rounds, "round")
    drained = texts.listed(answer.nodes, 60)
    text = Text(f"Draining {drained}, in {rounds}: {', '.join(parts)}.")
    text.highlight_regex(r"[\d,]+ moved", output.GOOD)
    text.highlight_regex(r"[\d,]+ (pending|held up|lost)", output.BAD)
    return text


def _pending(answer: Drain) -> dict[str, str]:
    return {move.pod: move.message for move in answer.pending} | answer.displaced


def _reasons(page: Page, what: str, messages: Mapping[str, str]) -> None:
    if messages:
        page.section(f"{texts.count(len(messages), 'pod')} {what}")
        page.put(_grouped(page, messages.items()))


def _stays(page: Page, what: str, stays: Iterable[Stay]) -> None:
    told = [(stay.pod, stay.reason) for stay in stays]
    if told:
        page.section(f"{texts.count(len(told), 'pod')} {what}")
        page.put(_grouped(page, told))


def _grouped(page: Page, told: Iterable[tuple[str, str]]) -> Table:
    by_reason: dict[str, list[str]] = {}
    for pod, reason in told:
        by_reason.setdefault(reason, []).append(pod)
    items = output.items()
    for reason, pods in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        names = texts.listed(pods, page.width - 8)
        items.add_row(f"{len(pods):,}", Text.assemble((names, output.BAD), "\n", reason))
    return items
