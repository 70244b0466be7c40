"""An explanation on a terminal: the answer in words, then every node's verdict."""

from collections import Counter

from rich.table import Table
from rich.text import Text

from moorage.api import texts
from moorage.cli import output
from moorage.cli.output import ConsolePage
from moorage.explaining import Explanation, preemption, report
from moorage.explaining.report import Ranking

MOST_RANKED = 10
ALL = 1_000_000_000


def show(told: Explanation, skipped: Counter[str], *, show_all: bool) -> None:
    """Print everything about one pod."""
    page = ConsolePage()
    page.put(_headline(told))
    _show_fitting(page, told, None if show_all else MOST_RANKED)
    _show_preemption(page, told, None if show_all else MOST_RANKED)
    _show_refused(page, told, show_all=show_all)
    _show_advice(page, told)
    page.skipped(skipped)


def _headline(told: Explanation) -> Text:
    text = Text(report.headline(told))
    text.highlight_words([told.pod.key], output.HEAD)
    if told.picked:
        text.highlight_words([told.picked], output.GOOD)
    text.highlight_words(["stays pending", "stay pending", "held back"], output.BAD)
    return text


def _show_fitting(page: ConsolePage, told: Explanation, most: int | None) -> None:
    ranking = report.ranking(told)
    if not ranking.nodes:
        return
    fit = "fits" if len(ranking.nodes) == 1 else "fit"
    page.section(f"{texts.count(len(ranking.nodes), 'node')} {fit}")
    if not told.totals:
        page.put(Text(texts.listed(ranking.nodes, ALL if most is None else 3 * page.width)))
        return
    plugins = _as_many_as_fit(page, told, ranking, most)
    page.put(_scores(told, ranking.shown(most), plugins))
    if len(plugins) < len(ranking.plugins):
        page.note(f"no room for {', '.join(ranking.plugins[len(plugins) :])}")
    hidden = len(ranking.nodes) - len(ranking.shown(most))
    if hidden:
        page.note(f"and {hidden:,} more; -a shows all")
    if ranking.alike:
        alike = ", ".join(f"{plugin} {score}" for plugin, score in ranking.alike.items())
        page.note(f"the same for all of them: {alike}")


def _as_many_as_fit(
    page: ConsolePage, told: Explanation, ranking: Ranking, most: int | None
) -> list[str]:
    """The plugins whose columns fit the terminal side by side."""
    plugins = ranking.plugins
    while plugins and page.measure(_scores(told, ranking.shown(most), plugins)) > page.width:
        plugins = plugins[:-1]
    return plugins


def _scores(told: Explanation, nodes: list[str], plugins: list[str]) -> Table:
    table = output.table()
    table.add_column("node", overflow="fold", vertical="bottom")
    table.add_column("total", justify="right")
    for plugin in plugins:
        table.add_column(output.stacked(plugin), justify="right")
    for name in nodes:
        scores = (f"{told.scores[name][plugin]:,}" for plugin in plugins)
        mark, style = ("* ", output.GOOD) if name == told.picked else ("  ", None)
        table.add_row(mark + name, f"{told.totals[name]:,}", *scores, style=style)
    return table


def _show_preemption(page: ConsolePage, told: Explanation, most: int | None) -> None:
    sacrifices = preemption.sacrifices(told)
    if not sacrifices:
        if told.preemption_message:
            page.section()
            page.put(Text(told.preemption_message))
        return
    page.section(f"Others could make room on {texts.count(len(sacrifices), 'node')}")
    items = output.items(justify="left")
    for each in sacrifices[:most]:
        said = Text("\n".join(each.victims))
        if each.harm:
            said.append(f"\n{each.harm}", output.BAD)
        mark, style = ("* ", output.GOOD) if each.is_chosen else ("  ", None)
        items.add_row(mark + each.node, said, style=style)
    page.put(items)
    if most is not None and len(sacrifices) > most:
        page.note(f"and {len(sacrifices) - most:,} more; -a shows all")


def _show_refused(page: ConsolePage, told: Explanation, *, show_all: bool) -> None:
    refused = len(told.rejected)
    if not refused:
        return
    page.section("1 node is refused" if refused == 1 else f"{refused:,} nodes are refused")
    items = output.items()
    width = ALL if show_all else page.width - len(str(refused)) - 2
    for group in report.groups(told):
        said = Text(group.reason)
        if group.plugin:
            said.append(f"  {group.plugin}", output.DIM)
        said.append(f"\n{texts.listed(group.nodes, width)}", output.DIM)
        items.add_row(f"{len(group.nodes):,}", said)
    page.put(items)


def _show_advice(page: ConsolePage, told: Explanation) -> None:
    if not told.advice:
        return
    page.section("What is behind it")
    items = output.items()
    for line in told.advice:
        items.add_row("-", Text(line))
    page.put(items)
