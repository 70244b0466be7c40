"""An explanation arranged for people: what to say first, whom to group, which scores matter.

Whether it ends up as plain text or as tables in colour is not known here.
"""

from typing import NamedTuple

from moorage.api import texts
from moorage.explaining import preemption
from moorage.explaining.explanation import Explanation


class Group(NamedTuple):
    """Nodes that were refused by the same plugin in the same words."""

    reason: str
    plugin: str
    nodes: list[str]


class Ranking(NamedTuple):
    """The nodes that fit, best first, and the scores that make a difference between them."""

    nodes: list[str]
    plugins: list[str]
    # Plugins that gave every node the same; they decide nothing.
    alike: dict[str, int]

    def shown(self, most: int | None) -> list[str]:
        """The first nodes, or all if there is no limit."""
        return self.nodes if most is None else self.nodes[:most]


def headline(told: Explanation) -> str:
    """The answer in a sentence or two."""
    text, key = _answer(told), told.pod.key
    if not told.runs_on:
        if told.pod.is_terminating:
            other = text.removeprefix(key).lstrip()
            return f"{key} is being deleted, so it is not scheduled. Otherwise it {other}"
        return text
    ended = f"has ended ({told.pod.status.phase}) on" if told.pod.is_terminal else "runs on"
    return f"{key} {ended} {told.runs_on}. Scheduled again, {text.removeprefix(key).lstrip()}"


def _answer(told: Explanation) -> str:
    key = told.pod.key
    if told.gate is not None:
        return f"{key} is held back by {told.gate.plugin}: {told.gate.message}."
    if told.error is not None and not told.error.is_rejected:
        who = f"plugin {told.error.plugin} failed" if told.error.plugin else "the attempt failed"
        return f"{key} cannot be decided on, because {who}: {told.message}"
    if told.nominated and told.candidates:
        fits = "it would fit" if told.runs_on else "fits"
        return f"{key} {fits} no node as they are. {preemption.headline(told)}."
    if not told.picked:
        stays = "it would stay pending" if told.runs_on else "stays pending"
        return f"{key} {stays}: {told.message}"
    return f"{key} {_goes(told)}: {_because(told)}."


def _goes(told: Explanation) -> str:
    if told.picked == told.runs_on:
        return "it would stay there"
    return f"it would go to {told.picked}" if told.runs_on else f"would run on {told.picked}"


def _because(told: Explanation) -> str:
    scored = [name for name in told.feasible if told.totals.get(name, -1) >= 0]
    if not scored:
        return _unscored(told) + _previous(told)
    if len(told.best) > 1:
        return _drawn(told, scored) + _previous(told)
    others = [name for name in scored if name != told.picked]
    second = max(others, key=lambda name: told.totals[name])
    text = _best(told, second, len(scored))
    return text if told.runs_on == second else text + _previous(told)


def _unscored(told: Explanation) -> str:
    if told.nodes == 1:
        return "there is no other"
    if len(told.feasible) == 1:
        return f"it is the only one of {texts.count(told.nodes, 'node')} that fits"
    if told.pod.status.nominated_node_name == told.picked:
        return "it fits, and was promised to the pod when others made room"
    return "it is the first that fits, and no plugin gives scores"


def _drawn(told: Explanation, scored: list[str]) -> str:
    others = texts.listed([name for name in told.best if name != told.picked], 40)
    points = texts.count(told.totals[told.picked], "point")
    if len(told.best) == len(scored):
        which = f"all {len(scored):,} that fit have {points}"
    else:
        which = f"{len(told.best):,} of the {len(scored):,} that fit share the best, {points}"
    return f"{which}, and the seed chose it over {others}"


def _best(told: Explanation, second: str, scored: int) -> str:
    points, ahead = told.totals[told.picked], told.totals[told.picked] - told.totals[second]
    text = (
        f"with {texts.count(points, 'point')} it is the best of the {scored:,} that fit, "
        f"{texts.count(ahead, 'point')} ahead of {second}"
    )
    plugin = _most_telling(told, told.picked, second)
    return f"{text}, most of all in {plugin}" if plugin else text


def _most_telling(told: Explanation, one: str, other: str) -> str:
    """The plugin that favours one node over another by the most points."""
    ours, theirs = told.scores[one], told.scores[other]
    leads = {plugin: score - theirs.get(plugin, 0) for plugin, score in ours.items()}
    plugin = max(leads, key=lambda name: leads[name], default="")
    return plugin if plugin and leads[plugin] > 0 else ""


def _previous(told: Explanation) -> str:
    """What became of the node that the pod is on, if it would not be picked again."""
    if told.runs_on in ("", told.picked):
        return ""
    refusal = told.rejected.get(told.runs_on)
    if refusal is not None:
        return f"; {told.runs_on} is refused ({refusal.message})"
    if told.totals.get(told.runs_on, -1) >= 0:
        return f"; {told.runs_on} has {told.totals[told.runs_on]:,}"
    known = told.runs_on in told.feasible
    return "" if known else f"; {told.runs_on} is not among the nodes"


def groups(told: Explanation) -> list[Group]:
    """The refused nodes by reason, the most frequent reason first."""
    nodes: dict[tuple[str, str], list[str]] = {}
    for name, status in told.rejected.items():
        nodes.setdefault((status.message, status.plugin), []).append(name)
    found = [Group(*said, names) for said, names in nodes.items()]
    return sorted(found, key=lambda group: (-len(group.nodes), group.reason))


def ranking(told: Explanation) -> Ranking:
    """The nodes that fit, best first."""
    totals = told.totals
    scored = [name for name in told.feasible if totals.get(name, -1) >= 0]
    if not scored:
        return Ranking(told.feasible, [], {})
    # Sorting is stable: nodes of one total stay in the order of the cluster.
    nodes = sorted(scored, key=lambda name: (-totals[name], name != told.picked))
    plugins = list(told.scores[nodes[0]])
    given = {plugin: {told.scores[name][plugin] for name in nodes} for plugin in plugins}
    alike = {plugin: min(given[plugin]) for plugin in plugins if len(given[plugin]) == 1}
    return Ranking(nodes, [plugin for plugin in plugins if plugin not in alike], alike)
