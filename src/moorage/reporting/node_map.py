"""The nodes at the end as tiles: how full each is, and which pods it has."""

from moorage.api import texts
from moorage.api.requests import PODS
from moorage.reporting import charts, heat_map, html
from moorage.reporting.html import tag
from moorage.sim.results.result import NodeUse, Result

# More than that are shown by the heat map only.
MOST_NODES = 400
NAMES_WIDTH = 400


def figure(result: Result) -> str:
    """A tile per node, in the order of names."""
    ordered = sorted(result.nodes, key=lambda node: heat_map.natural(node.name))
    caption = (
        "A tile per node: its pods, the new ones after a plus, and bars for the requested shares. "
        "Point at a tile to see the new pods."
    )
    tiles = tag("ul", *map(_tile, ordered), class_="nodes")
    return charts.figure("Nodes at the end", caption, tiles)


def _tile(node: NodeUse) -> str:
    new = f" +{len(node.new):,}" if node.new else ""
    head = tag("b", html.text(node.name)) + tag("span", f"{texts.count(node.pods, 'pod')}{new}")
    shown = [name for name in node.offered if name != PODS and node.requested[name]]
    bars = (_bar(node, name) for name in shown[:3])
    names = texts.listed(node.new, NAMES_WIDTH) or "no new pods"
    return tag("li", head, *bars, title=names, class_="full" if node.share > 0.95 else "")


def _bar(node: NodeUse, resource: str) -> str:
    percent = 100 * node.requested[resource] / node.offered[resource]
    label = f"{resource.rpartition('/')[2]} {percent:.0f} %"
    fill = tag("i", style=f"width: {min(percent, 100):.0f}%")
    return tag("div", tag("em", html.text(label)), fill, class_="bar")
