"""An explanation on a terminal: the headline, then every node's verdict."""

from collections import Counter

from rich.table import Table
from rich.text import Text

from moorage.api import texts
from moorage.cli import output
from moorage.cli.output import ConsolePage
from moorage.expansion.refusals import Refusal
from moorage.explaining import Explanation, text
from moorage.explaining.grouping import ReasonGroup
from moorage.explaining.recorded import Recorded
from moorage.sim.results.result import by_reason

MOST_RANKED = 10
ALL = 1_000_000_000


def show(explained: Explanation, skipped: Counter[str], *, show_all: bool) -> None:
    """Print everything about one pod."""
    page, most = ConsolePage(), None if show_all else MOST_RANKED
    headline = Text(text.headline(explained))
    headline.highlight_words([explained.pod.key], output.HEAD)
    if explained.picked:
        headline.highlight_words([explained.picked], output.GOOD)
    headline.highlight_words(
        ["stays pending", "stay pending", "is gated", "is not created"], output.BAD
    )
    page.put(headline)
    if explained.feasible:
        _show_feasible(page, explained, most)
    if explained.candidates:
        _show_preemption(page, explained, most)
    elif explained.preemption_message:
        page.section()
        page.put(Text(explained.preemption_message))
    if explained.rejected:
        _show_rejected(page, explained, show_all=show_all)
    if explained.advice:
        page.section("Details")
        items = output.items()
        for line in explained.advice:
            items.add_row("-", Text(line))
        page.put(items)
    page.skipped(skipped)


def show_recorded(found: Recorded, assumed: str, *, differs: bool, by_cluster: bool) -> None:
    """Print what the cluster's scheduler recorded, and the configuration that was assumed."""
    page = ConsolePage()
    page.put("")
    if found:
        page.put(Text("Recorded by the cluster's scheduler", style=output.HEAD))
        items = output.items(justify="left")
        for name, recorded in (("condition", found.condition), ("Event", found.event)):
            if recorded:
                items.add_row(name, Text(recorded))
        page.put(items)
    if by_cluster or differs:
        page.note(f"Configuration assumed here: {assumed}.")
    if differs:
        page.note(
            "The recorded reason differs from the explanation: the cluster has changed since, or "
            "its scheduler has another configuration."
        )


def show_groups(
    groups: list[ReasonGroup],
    together: dict[str, str] | None,
    refused: list[Refusal],
    assumed: str,
    skipped: Counter[str],
    *,
    show_all: bool,
) -> None:
    """Print pods by reason, with the details of the first pod of each.

    `together` has the pods that fit alone, but not if all pending pods are scheduled, and why.
    """
    page = ConsolePage()
    if groups:
        _show_groups(page, groups, together, show_all=show_all)
    if together:
        page.section(f"{texts.count(len(together), 'pod')} without a node if all are scheduled")
        page.reasons(by_reason(together), show_all=show_all)
    if refused:
        count = sum(each.pods for each in refused)
        page.section(f"{texts.count(count, 'pod')} refused at creation" if count else "Refused")
        page.refused(refused)
    page.section()
    page.note("`moorage explain POD` shows the verdict and the scores of every node.")
    if together:
        page.note("`moorage simulate --explain POD` shows them after all pods are scheduled.")
    if assumed:
        page.note(f"Configuration assumed here: {assumed}.")
    page.skipped(skipped)


def _show_groups(
    page: ConsolePage,
    groups: list[ReasonGroup],
    together: dict[str, str] | None,
    *,
    show_all: bool,
) -> None:
    pods = sum(len(group.pods) for group in groups)
    lacking = sum(len(group.pods) for group in groups if not group.is_placed)
    alone = pods - lacking
    answer = f"each alone, {alone:,} would fit a node now and {lacking:,} would not"
    if together is not None:
        answer += f"; all together, {alone - len(together):,} get a node"
    page.put(Text(f"{texts.count(pods, 'pod')} without a node: {answer}."))
    for group in groups:
        page.section()
        names = ", ".join(group.pods) if show_all else texts.listed(group.pods, page.width - 8)
        items, style = output.items(), output.GOOD if group.is_placed else output.BAD
        items.add_row(f"{len(group.pods):,}", Text.assemble((names, style), "\n", group.reason))
        for line in group.explanation.advice:
            items.add_row("-", Text(line, output.DIM))
        page.put(items)


def _show_feasible(page: ConsolePage, explained: Explanation, most: int | None) -> None:
    ranking = explained.ranking
    page.section(text.feasible_count(ranking))
    if not explained.totals:
        page.put(Text(texts.listed(ranking.nodes, ALL if most is None else 3 * page.width)))
        return
    nodes, plugins = ranking.shown(most), ranking.plugins
    # As many columns as fit the terminal.
    while plugins and page.measure(_scores(explained, nodes, plugins)) > page.width:
        plugins = plugins[:-1]
    page.put(_scores(explained, nodes, plugins))
    if len(plugins) < len(ranking.plugins):
        page.note(f"no room for {', '.join(ranking.plugins[len(plugins) :])}")
    if len(nodes) < len(ranking.nodes):
        page.note(f"and {len(ranking.nodes) - len(nodes):,} more; -a shows all")
    if ranking.equal:
        page.note(text.equal_scores(ranking))


def _scores(explained: Explanation, nodes: list[str], plugins: list[str]) -> Table:
    table = output.table()
    table.add_column("node", overflow="fold", vertical="bottom")
    table.add_column("total", justify="right")
    for plugin in plugins:
        table.add_column(output.stacked(plugin), justify="right")
    for name in nodes:
        scores = (f"{explained.scores[name][plugin]:,}" for plugin in plugins)
        mark, style = ("* ", output.GOOD) if name == explained.picked else ("  ", None)
        table.add_row(mark + name, f"{explained.totals[name]:,}", *scores, style=style)
    return table


def _show_preemption(page: ConsolePage, explained: Explanation, most: int | None) -> None:
    options = explained.preemption_options
    page.section(f"Preemption is possible on {texts.count(len(options), 'node')}")
    items = output.items(justify="left")
    for each in options[:most]:
        victims = Text("\n".join(text.victims(each)))
        if each.violations:
            victims.append(f"\n{text.harm(each)}", output.BAD)
        is_nominated = each.node == explained.nominated
        mark, style = ("* ", output.GOOD) if is_nominated else ("  ", None)
        items.add_row(mark + each.node, victims, style=style)
    page.put(items)
    if most is not None and len(options) > most:
        page.note(f"and {len(options) - most:,} more; -a shows all")


def _show_rejected(page: ConsolePage, explained: Explanation, *, show_all: bool) -> None:
    page.section(text.rejected_count(explained))
    items = output.items()
    width = ALL if show_all else page.width - len(str(len(explained.rejected))) - 2
    for group in explained.rejection_groups:
        reason = Text(group.reason)
        if group.plugin:
            reason.append(f"  {group.plugin}", output.DIM)
        reason.append(f"\n{texts.listed(group.nodes, width)}", output.DIM)
        items.add_row(f"{len(group.nodes):,}", reason)
    page.put(items)
