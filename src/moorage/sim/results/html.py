"""A result as HTML for notebooks: a sentence, the nodes, and the pending pods by reason."""

from collections.abc import Iterator

from moorage import markup
from moorage.api import texts
from moorage.markup import Html
from moorage.sim.results.result import NodeUse, Result

MOST_NODES = 20


def render(result: Result) -> str:
    """The result in a few lines."""
    return markup.join(_parts(result))


def _parts(result: Result) -> Iterator[Html]:
    yield markup.paragraph(
        f"{texts.count(result.running, 'pod')} on {texts.count(len(result.nodes), 'node')} after "
        f"{result.seconds:g} s: "
        f"{result.bound:,} bound, {result.pending_count:,} pending, "
        f"{len(result.disruptions):,} evicted.",
        strong=True,
    )
    if result.nodes:
        fullest = sorted(result.nodes, key=lambda node: (-node.share, node.name))[:MOST_NODES]
        resources = [name for name in result.resources if name != "pods"]
        yield markup.table(
            ["node", "pods", *(f"{name} requested" for name in resources)],
            (
                [node.name, node.pods, *(_share(node, name) for name in resources)]
                for node in fullest
            ),
        )
        if len(fullest) < len(result.nodes):
            yield markup.paragraph(f"and {len(result.nodes) - len(fullest):,} less full ones")
    if result.pending:
        yield markup.table(
            ["pending", "reason", "for example"],
            ([len(group.pods), group.reason, group.pods[0]] for group in result.pending),
        )


def _share(node: NodeUse, resource: str) -> str:
    total = node.offered.get(resource, 0)
    return f"{node.requested[resource] / total:.0%}" if total else ""
