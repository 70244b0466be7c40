"""The result as tables for CSV: one for each thing that has rows."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from moorage.sim.results.result import QUEUES, Result, share

Row = list[Any]


def tables(result: Result) -> dict[str, str]:
    """Every table by name, as the text of a CSV file."""
    return {name: text(make(result)) for name, make in MAKERS.items()}


def text(rows: Iterable[Row]) -> str:
    """Rows as CSV, with commas and lines that end as on any system."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def _samples(result: Result) -> Iterator[Row]:
    resources = result.resources
    measures = ("offered", "requested", "share", "fragmentation", "imbalance")
    counts = ["nodes", "running", "pending", *QUEUES, "bound"]
    yield ["seconds", *counts, *(f"{name} {what}" for name in resources for what in measures)]
    for sample in result.samples:
        row: Row = [f"{sample.at:g}", *(getattr(sample, name) for name in counts)]
        for name in resources:
            row += [sample.offered.get(name, 0), sample.requested.get(name, 0)]
            row += [share(sample, name), sample.fragmentation.get(name, 0.0)]
            row.append(sample.imbalance.get(name, 0.0))
        yield row


def _nodes(result: Result) -> Iterator[Row]:
    resources = result.resources
    measures = ("offered", "requested")
    yield ["node", "pods", "share", *(f"{name} {what}" for name in resources for what in measures)]
    for node in result.nodes:
        amounts = [
            amounts.get(name, 0) for name in resources for amounts in (node.offered, node.requested)
        ]
        yield [node.name, node.pods, node.share, *amounts]


def _pending(result: Result) -> Iterator[Row]:
    yield ["pod", "reason"]
    for group in result.pending:
        yield from ([pod, group.reason] for pod in group.pods)


def _disruptions(result: Result) -> Iterator[Row]:
    yield ["pod", "node", "seconds", "cause", "by"]
    for each in result.disruptions:
        yield [each.pod, each.node, f"{each.at:g}", each.cause, each.by]


def _spread(result: Result) -> Iterator[Row]:
    yield ["namespace", "selector", "topologyKey", "whenUnsatisfiable", "maxSkew", "skew", "pods"]
    for each in result.spread_violations:
        yield list(each.to_dict().values())


# Each begins with a row of heads.
MAKERS: dict[str, Callable[[Result], Iterator[Row]]] = {
    "samples": _samples,
    "nodes": _nodes,
    "pending": _pending,
    "disruptions": _disruptions,
    "spread": _spread,
}
