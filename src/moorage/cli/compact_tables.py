"""A compaction on a terminal: the answer, and how it spreads over the seeds."""

from collections import Counter

from rich.text import Text

from moorage.api import texts
from moorage.cli import output
from moorage.cli.output import Page
from moorage.planning.compact import Compaction, percentile


def show(answer: Compaction, skipped: Counter[str]) -> None:
    """Print how few nodes are enough."""
    page = Page()
    page.put(_headline(answer))
    page.section()
    items = output.items()
    kept = list(answer.kept.values())
    for number, said in (
        (answer.needed, f"at the 90th percentile of {texts.count(len(kept), 'seed')}"),
        (percentile(kept, 50), "in the middle"),
        (min(kept), "at best"),
        (max(kept), "at worst"),
        (answer.lower_bound, "at least, by resources alone"),
    ):
        items.add_row(f"{number:,}", Text(said, output.DIM))
    page.put(items)
    if answer.left_out:
        page.section(f"{texts.count(len(answer.left_out), 'pod')} left out: no node takes them")
        page.put(Text(texts.listed(list(answer.left_out), 3 * page.width), output.BAD))
    output.skipped(page, skipped)


def _headline(answer: Compaction) -> Text:
    pods = texts.count(answer.pods, "pod")
    nodes = texts.count(answer.nodes, "node")
    text = Text(f"{pods} on {nodes} would fit on {answer.needed:,} ({answer.share:.0%}).")
    text.highlight_regex(r"fit on [\d,]+", output.GOOD)
    return text
