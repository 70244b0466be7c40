"""An explanation as plain text, for `print` and for logs; `moorage explain` draws tables."""

import textwrap

from moorage.api import texts
from moorage.explaining import preemption, report
from moorage.explaining.explanation import Explanation
from moorage.explaining.report import Ranking

WIDTH = 100
MOST_RANKED = 10
INDENT = "  "
PICKED = "*"


def render(told: Explanation) -> str:
    """The whole explanation, in lines of at most 100 characters."""
    sections = [
        _wrapped(report.headline(told)),
        _fitting(told),
        _preemption(told),
        _refused(told),
        _advice(told),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,  # Names of pods and nodes are full of them.
    )


# Nodes that fit


def _fitting(told: Explanation) -> list[str]:
    ranking = report.ranking(told)
    if not ranking.nodes:
        return []
    lines = [f"{texts.count(len(ranking.nodes), 'node')} fit:"]
    if len(ranking.nodes) == 1:
        lines = ["1 node fits:"]
    if not told.totals:
        return lines + _wrapped(texts.listed(ranking.nodes, 3 * WIDTH), INDENT, INDENT)
    shown = ranking.shown(MOST_RANKED)
    lines += _table(told, ranking, shown)
    if len(shown) < len(ranking.nodes):
        lines.append(f"{INDENT}and {len(ranking.nodes) - len(shown):,} more")
    return lines + _alike(ranking)


def _table(told: Explanation, ranking: Ranking, shown: list[str]) -> list[str]:
    """One line per node and one column per plugin, as far as they fit side by side."""
    name_width = min(max(len(name) for name in shown), 40)
    head = f"{INDENT}{' ':<{name_width + 2}}{'total':>7}"
    columns: list[str] = []
    for plugin in ranking.plugins:
        if len(head) + len(plugin) + 2 > WIDTH:
            break
        head += f"  {plugin}"
        columns.append(plugin)
    lines = [head]
    for name in shown:
        mark = PICKED if name == told.picked else " "
        line = f"{INDENT}{mark} {_short(name, name_width):<{name_width}}{told.totals[name]:>7,}"
        line += "".join(f"  {told.scores[name][plugin]:>{len(plugin)},}" for plugin in columns)
        lines.append(line)
    left_out = ranking.plugins[len(columns) :]
    if left_out:
        lines += _wrapped(f"not shown: {', '.join(left_out)}", INDENT, INDENT)
    return lines


def _short(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 3]}..."


def _alike(ranking: Ranking) -> list[str]:
    if not ranking.alike:
        return []
    said = ", ".join(f"{plugin} {score}" for plugin, score in ranking.alike.items())
    return _wrapped(f"the same for all of them: {said}", INDENT, INDENT)


# Nodes that others could leave


def _preemption(told: Explanation) -> list[str]:
    sacrifices = preemption.sacrifices(told)
    if not sacrifices:
        return _wrapped(told.preemption_message)
    lines = [f"Others could make room on {texts.count(len(sacrifices), 'node')}:"]
    for each in sacrifices[:MOST_RANKED]:
        mark = PICKED if each.is_chosen else " "
        said = f"{each.node}: {texts.listed(each.victims, 2 * WIDTH)}"
        said += f"; {each.harm}" if each.harm else ""
        lines += _wrapped(said, f"{INDENT}{mark} ", INDENT * 3)
    more = len(sacrifices) - MOST_RANKED
    return [*lines, f"{INDENT}and {more:,} more"] if more > 0 else lines


# Nodes that do not


def _refused(told: Explanation) -> list[str]:
    groups = report.groups(told)
    if not groups:
        return []
    refused = len(told.rejected)
    lines = ["1 node is refused:" if refused == 1 else f"{refused:,} nodes are refused:"]
    for group in groups:
        by = f" ({group.plugin})" if group.plugin else ""
        lines += _wrapped(f"{len(group.nodes):,}  {group.reason}{by}", INDENT, INDENT * 3)
        names = texts.listed(group.nodes, WIDTH - 3 * len(INDENT))
        lines += _wrapped(names, INDENT * 3, INDENT * 3)
    return lines


def _advice(told: Explanation) -> list[str]:
    if not told.advice:
        return []
    lines = ["What is behind it:"]
    for line in told.advice:
        lines += _wrapped(line, f"{INDENT}- ", INDENT * 2)
    return lines
