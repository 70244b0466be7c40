"""A compaction on a terminal: the answer, and how it spreads over the seeds."""

from collections import Counter

from rich.text import Text

from moorage.cli import output
from moorage.cli.output import Page
from moorage.explaining import words
from moorage.planning.compact import Compaction, percentile


def show(answer: Compaction, skipped: Counter[str]) -> None:
    """Print how few nodes are enough."""
    page = Page()
    page.put(_headline(answer))
    page.section()
    items = output.items()
    kept = list(answer.kept.values())
    for number, said in (
        (answer.needed, f"at the 90th percentile of {words.count(len(kept), 'seed')}"),
        (percentile(kept, 50), "in the middle"),
        (min(kept), "at best"),
        (max(kept), "at worst"),
        (answer.lower_bound, "at least, by resources alone"),
    ):
        items.add_row(f"{number:,}", Text(said, output.DIM))
    page.put(items)
    if answer.left_out:
        page.section(f"{words.count(len(answer.left_out), 'pod')} left out: no node takes them")
        page.put(Text(words.listed(list(answer.left_out), 3 * page.width), output.BAD))
    output.skipped(page, skipped)


def _headline(answer: Compaction) -> Text:
    pods = words.count(answer.pods, "pod")
    nodes = words.count(answer.nodes, "node")
    text = Text(f"{pods} on {nodes} would fit on {answer.needed:,} ({answer.share:.0%}).")
    text.highlight_regex(r"fit on [\d,]+", output.GOOD)
    return text
