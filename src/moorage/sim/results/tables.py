"""A result as tables: CSV files, and data frames of pandas or polars.

Neither library is required for anything else.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import structs

from moorage.api import requests
from moorage.api.pod import Pod
from moorage.errors import InputError
from moorage.sim.results.result import Result
from moorage.sim.results.samples import QUEUES

if TYPE_CHECKING:
    from moorage.sim.run import Simulation

Cells = list[Any]
Columns = dict[str, list[Any]]

LIBRARIES = ("pandas", "polars")
PODS = "pods"
SECONDS = "seconds"


def tables(result: Result) -> dict[str, str]:
    """Every table by name, as the text of a CSV file."""
    return {name: text(make(result)) for name, make in MAKERS.items()}


def text(rows: Iterable[Cells]) -> str:
    """Rows as CSV, with `\\n` as line end on every system."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def _samples(result: Result) -> Iterator[Cells]:
    resources = result.resources
    measures = ("offered", "requested", "share", "mean share", "fragmentation", "imbalance")
    means = {name: result.mean_shares(name) for name in resources}
    counts = ["nodes", "running", "pending", *QUEUES, "bound"]
    yield ["seconds", *counts, *(f"{name} {what}" for name in resources for what in measures)]
    for index, sample in enumerate(result.samples):
        row: Cells = [_seconds(sample.at), *(getattr(sample, name) for name in counts)]
        for name in resources:
            row += [sample.offered.get(name, 0), sample.requested.get(name, 0)]
            row += [sample.share(name), means[name][index]]
            row += [sample.fragmentation.get(name, 0.0), sample.imbalance.get(name, 0.0)]
        yield row


def _seconds(at: float) -> float | int:
    """A moment to the microsecond; a whole number of seconds without a fraction."""
    rounded = round(at, 6)
    return int(rounded) if rounded.is_integer() else rounded


def _nodes(result: Result) -> Iterator[Cells]:
    resources = result.resources
    measures = ("offered", "requested")
    yield ["node", "pods", "share", *(f"{name} {what}" for name in resources for what in measures)]
    for node in result.nodes:
        both = (node.allocatable, node.requested)
        amounts = [each.get(name, 0) for name in resources for each in both]
        yield [node.name, node.pods, node.share, *amounts]


def _pending(result: Result) -> Iterator[Cells]:
    yield ["pod", "reason"]
    for group in result.pending:
        yield from ([pod, group.reason] for pod in group.pods)


def _placements(result: Result) -> Iterator[Cells]:
    yield ["pod", "node", "created", "scheduled", "bound", "ended"]
    for each in result.history:
        times = (each.created_at, result.scheduled_at.get(each.uid), each.bound_at, each.ended_at)
        yield [each.pod, each.node or None, *(None if t is None else _seconds(t) for t in times)]


def _disruptions(result: Result) -> Iterator[Cells]:
    yield ["pod", "node", "seconds", "cause", "by"]
    for each in result.disruptions:
        yield [each.pod, each.node, _seconds(each.at), each.cause, each.by]


def _spread(result: Result) -> Iterator[Cells]:
    yield ["namespace", "selector", "topologyKey", "whenUnsatisfiable", "maxSkew", "skew", "pods"]
    for each in result.spread_violations:
        yield list(structs.astuple(each))


# The first row of each has the column names.
MAKERS: dict[str, Callable[[Result], Iterator[Cells]]] = {
    "samples": _samples,
    "placements": _placements,
    "nodes": _nodes,
    "pending": _pending,
    "disruptions": _disruptions,
    "spread": _spread,
}
TABLES = (PODS, *MAKERS)


def frame(simulation: "Simulation", table: str = PODS, library: str | None = None) -> Any:
    """One of the tables as a data frame of pandas, or of polars."""
    if table not in TABLES:
        raise InputError(f'table "{table}" is not known; it may be {", ".join(TABLES)}')
    make = _maker(library)
    if table == PODS:
        return make(_pods(simulation))
    return make(_columns(simulation.result, table))


def _maker(library: str | None) -> Callable[[Columns], Any]:
    if library is not None and library not in LIBRARIES:
        raise InputError(f'library "{library}" is not known; it may be {" or ".join(LIBRARIES)}')
    for name in LIBRARIES if library is None else (library,):
        try:
            make: Callable[[Columns], Any] = import_module(name).DataFrame
        except ImportError:
            continue
        return make
    needed = library or " or ".join(LIBRARIES)
    raise InputError(f"data frames need {needed}; write: pip install {library or LIBRARIES[0]}")


def _columns(result: Result, table: str) -> Columns:
    head, *rows = MAKERS[table](result)
    columns = {name: [row[index] for row in rows] for index, name in enumerate(head)}
    if SECONDS in columns:
        columns[SECONDS] = [float(at) for at in columns[SECONDS]]
    return columns


def _pods(simulation: "Simulation") -> Columns:
    """A row for each pod: its node, its requests, and why it is pending."""
    pods, why = list(simulation.cluster.all(Pod)), simulation.pending
    requested = [requests.requested(pod) for pod in pods]
    columns: Columns = {
        "pod": [pod.key for pod in pods],
        "namespace": [pod.namespace for pod in pods],
        "node": [pod.node_name or None for pod in pods],
        "phase": [pod.status.phase for pod in pods],
        "priority": [pod.spec.priority or 0 for pod in pods],
        "owner": [f"{by.kind}/{by.name}" if (by := pod.controller) else None for pod in pods],
        "pending": [why.get(pod.key) for pod in pods],
    }
    result = simulation.result
    history = {each.uid: each for each in result.history}
    known = [history.get(pod.uid) for pod in pods]
    columns["created"] = [each and each.created_at for each in known]
    columns["scheduled"] = [result.scheduled_at.get(pod.uid) for pod in pods]
    columns["bound"] = [each and each.bound_at for each in known]
    first = (requests.CPU, requests.MEMORY)
    for name in dict.fromkeys((*first, *(name for amounts in requested for name in amounts))):
        columns[f"{name} requested"] = [amounts.get(name, 0) for amounts in requested]
    return columns
