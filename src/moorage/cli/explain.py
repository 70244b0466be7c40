"""`moorage explain`: why this node, or why none."""

from typing import TYPE_CHECKING

import click

from moorage.cli import options

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from moorage.explaining import Explanation
    from moorage.explaining.report import Ranking

MOST_RANKED = 10


@click.command()
@click.argument("pod")
@options.files
@options.configuration
@options.output(*options.OUTPUTS)
@options.everything("Show every node that fits, and every name.")
def explain(
    pod: str, paths: tuple[str, ...], config_file: str | None, output: str, *, show_all: bool
) -> None:
    """Say where POD would run and why, or why it stays pending.

    POD is namespace/name, or a name that only one pod has. One scheduling cycle is run for it, and
    every verdict and score is kept; nothing is changed. Pods with a node count as running there,
    other pending pods do not count. A pod that has a node itself is looked at as if it were to be
    scheduled again.
    """
    from moorage import explain as ask
    from moorage.api import manifests
    from moorage.cli import output as out

    manifest = manifests.load(paths)
    told = ask(manifest.objects, pod, config_file)
    if output != "table":
        out.document(told.to_dict(), output)
        return
    console = out.console()
    _print(console, told, MOST_RANKED if not show_all else None)
    if (left_aside := out.skipped(manifest.skipped)) is not None:
        console.print()
        console.print(left_aside)


def _print(console: "Console", told: "Explanation", most: int | None) -> None:
    console.print(_headline(told))
    _print_fitting(console, told, most)
    _print_refused(console, told, most)
    _print_advice(console, told)


def _headline(told: "Explanation") -> "Text":
    from rich.text import Text

    from moorage.cli import output as out
    from moorage.explaining import report

    text = Text(report.headline(told))
    text.highlight_words([told.pod.key], out.HEAD)
    if told.picked:
        text.highlight_words([told.picked], out.GOOD)
    else:
        text.highlight_words(["stays pending", "would stay pending", "held back"], out.BAD)
    return text


# Nodes that fit


def _print_fitting(console: "Console", told: "Explanation", most: int | None) -> None:
    from rich.text import Text

    from moorage.cli import output as out
    from moorage.explaining import report, words

    ranking = report.ranking(told)
    if not ranking.nodes:
        return
    console.print()
    fit = "fits" if len(ranking.nodes) == 1 else "fit"
    console.print(Text(f"{words.count(len(ranking.nodes), 'node')} {fit}", style=out.HEAD))
    if not told.totals:
        names = words.listed(ranking.nodes, 10_000 if most is None else 3 * console.width)
        console.print(Text(names))
        return
    console.print(_scores(told, ranking, most))
    hidden = len(ranking.nodes) - len(ranking.shown(most))
    if hidden:
        console.print(Text(f"and {hidden:,} more with fewer points; -a shows all", style=out.DIM))
    if ranking.alike:
        alike = ", ".join(f"{plugin} {score}" for plugin, score in ranking.alike.items())
        console.print(Text(f"the same for all of them: {alike}", style=out.DIM))


def _scores(told: "Explanation", ranking: "Ranking", most: int | None) -> "Table":
    from moorage.cli import output as out

    table = out.table()
    table.add_column("node", overflow="fold")
    table.add_column("total", justify="right")
    for plugin in ranking.plugins:
        table.add_column(out.stacked(plugin), justify="right", vertical="bottom")
    for name in ranking.shown(most):
        scores = (f"{told.scores[name][plugin]:,}" for plugin in ranking.plugins)
        picked = name == told.picked
        mark = "* " if picked else "  "
        style = out.GOOD if picked else None
        table.add_row(mark + name, f"{told.totals[name]:,}", *scores, style=style)
    return table


# Nodes that do not


def _print_refused(console: "Console", told: "Explanation", most: int | None) -> None:
    from rich.text import Text

    from moorage.cli import output as out
    from moorage.explaining import report, words

    groups = report.groups(told)
    if not groups:
        return
    refused = len(told.rejected)
    console.print()
    console.print(
        Text("1 node is refused" if refused == 1 else f"{refused:,} nodes are refused", out.HEAD)
    )
    table = out.table(heads=False)
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    for group in groups:
        width = 1_000_000 if most is None else console.width - len(str(refused)) - 3
        said = Text(group.reason)
        if group.plugin:
            said.append(f"  {group.plugin}", out.DIM)
        said.append(f"\n{words.listed(group.nodes, width)}", out.DIM)
        table.add_row(f"{len(group.nodes):,}", said)
    console.print(table)


def _print_advice(console: "Console", told: "Explanation") -> None:
    from rich.text import Text

    from moorage.cli import output as out

    if not told.advice:
        return
    console.print()
    console.print(Text("What is behind it", style=out.HEAD))
    table = out.table(heads=False)
    table.add_column()
    table.add_column(overflow="fold")
    for line in told.advice:
        table.add_row("-", Text(line))
    console.print(table)
