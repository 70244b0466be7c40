"""An explanation as plain text, for `print` and logs; `moorage explain` draws tables.

The headline and other phrases serve every renderer.
"""

import textwrap

from moorage.api import texts
from moorage.explaining.explanation import Explanation, Ranking
from moorage.framework.post_filter import Candidate

WIDTH = 100
MOST_RANKED = 10
INDENT = "  "
PICKED = "*"


def render(explained: Explanation) -> str:
    """The whole explanation, in lines of at most 100 characters."""
    sections = [
        _wrapped(headline(explained)),
        _feasible(explained),
        _preemption(explained),
        _rejected(explained),
        _advice(explained),
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


# The headline


def headline(explained: Explanation) -> str:
    """The decision in a sentence or two."""
    text, pod = _sentence(explained), explained.pod
    rest = text.removeprefix(pod.key).lstrip()
    if explained.runs_on:
        runs = f"has ended ({pod.status.phase}) on" if pod.is_terminal else "runs on"
        if explained.is_node_missing and not pod.is_terminal:
            runs = "cannot run: its spec.nodeName names a node that does not exist,"
        return f"{pod.key} {runs} {explained.runs_on}. Scheduled again, {rest}"
    if pod.is_terminating:
        return f"{pod.key} is being deleted, so it is not scheduled. Otherwise it {rest}"
    return text


def _sentence(explained: Explanation) -> str:
    key, gate, error = explained.pod.key, explained.gate, explained.error
    if explained.refused:
        return f"{key} is not created: {explained.refused}"
    if gate is not None:
        return f"{key} is gated by {gate.plugin}: {gate.message}."
    if error is not None and not error.is_rejected:
        what = f"plugin {error.plugin} failed" if error.plugin else "the attempt failed"
        return f"{key} cannot be scheduled, because {what}: {explained.message}"
    if explained.nominated and explained.candidates:
        fits = "it would fit" if explained.runs_on else "fits"
        return f"{key} {fits} no node without preemption. {_preemption_sentence(explained)}."
    if not explained.picked:
        stays = "it would stay pending" if explained.runs_on else "stays pending"
        return f"{key} {stays}: {explained.message}"
    if explained.picked == explained.runs_on:
        goes = "it would stay there"
    else:
        goes = ("it would go to " if explained.runs_on else "would run on ") + explained.picked
    return f"{key} {goes}: {_because(explained)}."


def _because(explained: Explanation) -> str:
    scored = explained.scored
    if not scored:
        return _unscored(explained) + _previous(explained)
    if len(explained.best) > 1:
        return _drawn(explained, scored) + _previous(explained)
    text = _best(explained, len(scored))
    return text if explained.runs_on == explained.runner_up else text + _previous(explained)


def _unscored(explained: Explanation) -> str:
    if explained.nodes == 1:
        return "it is the only node"
    if len(explained.feasible) == 1:
        return f"it is the only one of {texts.count(explained.nodes, 'node')} that fits"
    if explained.pod.status.nominated_node_name == explained.picked:
        return "it fits, and it is the pod's nominated node"
    return "it is the first that fits, and no plugin gives scores"


def _drawn(explained: Explanation, scored: list[str]) -> str:
    others = texts.listed([name for name in explained.best if name != explained.picked], 40)
    points = texts.count(explained.totals[explained.picked], "point")
    if len(explained.best) == len(scored):
        which = f"all {len(scored):,} that fit have {points}"
    else:
        which = f"{len(explained.best):,} of the {len(scored):,} that fit share the best, {points}"
    return f"{which}, and the seed selected it over {others}"


def _best(explained: Explanation, scored: int) -> str:
    second, totals = explained.runner_up, explained.totals
    points, ahead = totals[explained.picked], totals[explained.picked] - totals[second]
    text = (
        f"with {texts.count(points, 'point')} it is the best of the {scored:,} that fit, "
        f"{texts.count(ahead, 'point')} ahead of {second}"
    )
    plugin = explained.deciding_plugin
    return f"{text}, most of all in {plugin}" if plugin else text


def _previous(explained: Explanation) -> str:
    """The verdict on the node that the pod runs on, if another one is picked."""
    node = explained.runs_on
    if node in ("", explained.picked) or explained.is_node_missing:
        return ""
    if node in explained.rejected:
        return f"; {node} is rejected ({explained.rejected[node].message})"
    if explained.totals.get(node, -1) >= 0:
        return f"; {node} has {explained.totals[node]:,}"
    return ""


def _preemption_sentence(explained: Explanation) -> str:
    chosen = next(each for each in explained.candidates if each.node == explained.nominated)
    pods = texts.count(len(chosen.victims), "pod")
    nodes = texts.count(len(explained.candidates), "node")
    where = f"of {nodes} where preemption helps, " if len(explained.candidates) > 1 else ""
    return f"{pods} would be preempted on {explained.nominated}; {where}{explained.why_nominated}"


# Feasible nodes


def _feasible(explained: Explanation) -> list[str]:
    ranking = explained.ranking
    if not ranking.nodes:
        return []
    lines = [f"{feasible_count(ranking)}:"]
    if not explained.totals:
        return lines + _wrapped(texts.listed(ranking.nodes, 3 * WIDTH), INDENT, INDENT)
    shown = ranking.shown(MOST_RANKED)
    lines += _table(explained, ranking, shown)
    if len(shown) < len(ranking.nodes):
        lines.append(f"{INDENT}and {len(ranking.nodes) - len(shown):,} more")
    return lines + _wrapped(equal_scores(ranking), INDENT, INDENT)


def feasible_count(ranking: Ranking) -> str:
    """`1 node fits`, `12 nodes fit`."""
    return texts.count(len(ranking.nodes), "node", "fit")


def equal_scores(ranking: Ranking) -> str:
    """The plugins whose scores do not differ; empty if all do."""
    scores = ", ".join(f"{plugin} {score}" for plugin, score in ranking.equal.items())
    return f"the same for all of them: {scores}" if scores else ""


def _table(explained: Explanation, ranking: Ranking, shown: list[str]) -> list[str]:
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
        mark = PICKED if name == explained.picked else " "
        total = f"{explained.totals[name]:>7,}"
        line = f"{INDENT}{mark} {_short(name, name_width):<{name_width}}{total}"
        line += "".join(f"  {explained.scores[name][plugin]:>{len(plugin)},}" for plugin in columns)
        lines.append(line)
    left_out = ranking.plugins[len(columns) :]
    if left_out:
        lines += _wrapped(f"not shown: {', '.join(left_out)}", INDENT, INDENT)
    return lines


def _short(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 3]}..."


# Preemption


def _preemption(explained: Explanation) -> list[str]:
    options = explained.preemption_options
    if not options:
        return _wrapped(explained.preemption_message)
    lines = [f"Preemption is possible on {texts.count(len(options), 'node')}:"]
    for each in options[:MOST_RANKED]:
        mark = PICKED if each.node == explained.nominated else " "
        line = f"{each.node}: {texts.listed(victims(each), 2 * WIDTH)}"
        line += f"; {harm(each)}" if harm(each) else ""
        lines += _wrapped(line, f"{INDENT}{mark} ", INDENT * 3)
    more = len(options) - MOST_RANKED
    return [*lines, f"{INDENT}and {more:,} more"] if more > 0 else lines


def victims(candidate: Candidate) -> list[str]:
    """The pods that preemption on a node would delete."""
    return [f"{victim.key} (priority {victim.priority:,})" for victim in candidate.victims]


def harm(candidate: Candidate) -> str:
    """The disruption budgets that preemption on a node would violate; empty if none."""
    if not candidate.violations:
        return ""
    whose = "budget" if len(candidate.budgets) == 1 else "budgets"
    pods = texts.count(candidate.violations, "pod")
    return f"violates disruption {whose} {', '.join(candidate.budgets)} ({pods})"


# Rejected nodes


def _rejected(explained: Explanation) -> list[str]:
    if not explained.rejected:
        return []
    lines = [f"{rejected_count(explained)}:"]
    for group in explained.rejection_groups:
        by = f" ({group.plugin})" if group.plugin else ""
        lines += _wrapped(f"{len(group.nodes):,}  {group.reason}{by}", INDENT, INDENT * 3)
        names = texts.listed(group.nodes, WIDTH - 3 * len(INDENT))
        lines += _wrapped(names, INDENT * 3, INDENT * 3)
    return lines


def rejected_count(explained: Explanation) -> str:
    """`1 node is rejected`, `12 nodes are rejected`."""
    return f"{texts.count(len(explained.rejected), 'node', 'are')} rejected"


def _advice(explained: Explanation) -> list[str]:
    if not explained.advice:
        return []
    lines = ["Details:"]
    for line in explained.advice:
        lines += _wrapped(line, f"{INDENT}- ", INDENT * 2)
    return lines
