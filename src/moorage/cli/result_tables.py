"""A result on a terminal: a sentence, utilisation, waits, who is pending, who was disrupted."""

from rich.table import Table
from rich.text import Text

from moorage.api import texts
from moorage.api.requests import PODS
from moorage.cli import output
from moorage.cli.output import Page
from moorage.reporting import ticks
from moorage.sim.results import disruptions
from moorage.sim.results.result import Result, share

MOST_ROWS = 10
BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN_BLOCKS = "._-=+*#@"
SPARK = 36


def show(result: Result, name: str, seed: int) -> None:
    """Print what came of a scenario."""
    page = Page()
    page.put(_summary(result, name, seed))
    if result.nodes:
        page.section()
        page.put(_utilisation(page, result))
    if result.waits.count:
        page.section("Time to schedule")
        page.put(_waits(result))
    if result.disruptions:
        page.section(f"{texts.count(len(result.disruptions), 'pod')} disrupted")
        page.put(_disruptions(result))
    if result.spread_violations:
        page.section("Uneven spread")
        page.put(_spread(result))
    if result.pending:
        stay = "stays" if result.pending_count == 1 else "stay"
        page.section(f"{texts.count(result.pending_count, 'pod')} {stay} pending")
        page.put(_pending(page, result))
        output.claims_hint(page, (group.reason for group in result.pending))


def _summary(result: Result, name: str, seed: int) -> Text:
    parts = [f"{result.bound:,} bound", f"{result.ended:,} ended"]
    parts.append(f"{result.running:,} on {texts.count(len(result.nodes), 'node')} at the end")
    parts.append(f"{result.pending_count:,} pending")
    pods = texts.count(result.created, "pod")
    text = Text(f"{name}, seed {seed}: {pods} in {ticks.span(result.seconds)}: ")
    text.append(", ".join(parts) + ".")
    text.highlight_regex(r"[\d,]+ bound", output.GOOD)
    if result.pending:
        text.highlight_regex(r"[\d,]+ pending", output.BAD)
    return text


def _utilisation(page: Page, result: Result) -> Table:
    table = output.table()
    table.add_column("resource")
    for head in ("mean", "peak", "at the end", "fragmented", "imbalance"):
        table.add_column(head, justify="right", no_wrap=True)
    wide = page.width >= 100 and result.seconds > 0
    if wide:
        table.add_column("over time", no_wrap=True)
    last = result.samples[-1]
    for name, use in result.utilisation().items():
        if name == PODS and len(result.resources) > 1:
            continue
        row = [_percent(use.mean), _percent(use.peak), _percent(use.last)]
        row += [
            _percent(last.fragmentation.get(name, 0.0)),
            _percent(last.imbalance.get(name, 0.0)),
        ]
        if wide:
            row.append(_spark(result, name, plain=page.console.options.ascii_only))
        table.add_row(name.rpartition("/")[2], *row)
    return table


def _percent(part: float) -> str:
    return f"{100 * part:.0f}%"


def _spark(result: Result, resource: str, *, plain: bool) -> str:
    """How a share went, in one line; full height is 100 %."""
    blocks = PLAIN_BLOCKS if plain else BLOCKS
    found, place = [], 0
    for column in range(SPARK):
        moment = (column + 0.5) * result.seconds / SPARK
        while place + 1 < len(result.samples) and result.samples[place + 1].at <= moment:
            place += 1
        part = share(result.samples[place], resource)
        found.append(blocks[min(len(blocks) - 1, int(part * len(blocks)))])
    return "".join(found)


def _waits(result: Result) -> Table:
    table = output.table()
    waits = result.waits
    for head in ("pods", "mean", "median", "90 %", "99 %", "longest"):
        table.add_column(head, justify="right", no_wrap=True)
    spans = (waits.mean, waits.p50, waits.p90, waits.p99, waits.max)
    table.add_row(f"{waits.count:,}", *map(ticks.span, spans))
    return table


def _disruptions(result: Result) -> Table:
    items = output.items()
    causers = disruptions.by_cause(result.disruptions)
    for cause, by, count in causers[:MOST_ROWS]:
        items.add_row(f"{count:,}", Text.assemble(f"{cause} ", (f"by {by}", output.DIM)))
    if len(causers) > MOST_ROWS:
        rest = sum(count for _, _, count in causers[MOST_ROWS:])
        items.add_row(f"{rest:,}", Text(f"by {len(causers) - MOST_ROWS:,} others", output.DIM))
    return items


def _spread(result: Result) -> Table:
    items = output.items()
    for each in result.spread_violations[:MOST_ROWS]:
        said = f"skew {each.skew} over {each.topology_key}, {each.max_skew} is allowed"
        who = f"{each.namespace}: {each.selector}"
        items.add_row(f"{each.pods:,}", Text.assemble(f"{who} ", (said, output.DIM)))
    return items


def _pending(page: Page, result: Result) -> Table:
    items = output.items()
    for group in result.pending[:MOST_ROWS]:
        names = texts.listed(group.pods, page.width - 8)
        items.add_row(
            f"{len(group.pods):,}", Text.assemble((names, output.BAD), "\n", group.reason)
        )
    if len(result.pending) > MOST_ROWS:
        items.add_row("", f"and {len(result.pending) - MOST_ROWS:,} more reasons")
    return items
