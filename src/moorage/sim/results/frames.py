"""Results as data frames, for whoever has pandas or polars; neither is needed for anything else."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from moorage.api import requests
from moorage.api.pod import Pod
from moorage.errors import InputError
from moorage.sim.results import tables
from moorage.sim.results.result import Result

if TYPE_CHECKING:
    from moorage.sim.run import Simulation

LIBRARIES = ("pandas", "polars")
PODS = "pods"
TABLES = (PODS, *tables.MAKERS)
SECONDS = "seconds"

Columns = dict[str, list[Any]]


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
    wanted = library or " or ".join(LIBRARIES)
    raise InputError(f"data frames need {wanted}; write: pip install {library or LIBRARIES[0]}")


def _columns(result: Result, table: str) -> Columns:
    head, *rows = tables.MAKERS[table](result)
    columns = {name: [row[place] for row in rows] for place, name in enumerate(head)}
    if SECONDS in columns:
        columns[SECONDS] = [float(at) for at in columns[SECONDS]]
    return columns


def _pods(simulation: "Simulation") -> Columns:
    """A row for each pod: where it is, what it asks for, and why it waits."""
    pods, why = list(simulation.cluster.all(Pod)), simulation.pending
    asked = [requests.requested(pod) for pod in pods]
    columns: Columns = {
        "pod": [pod.key for pod in pods],
        "namespace": [pod.namespace for pod in pods],
        "node": [pod.node_name or None for pod in pods],
        "phase": [pod.status.phase for pod in pods],
        "priority": [pod.spec.priority or 0 for pod in pods],
        "owner": [_owner(pod) for pod in pods],
        "pending": [why.get(pod.key) for pod in pods],
    }
    for name in _resources(asked):
        columns[f"{name} requested"] = [amounts.get(name, 0) for amounts in asked]
    return columns


def _resources(asked: Iterable[Mapping[str, int]]) -> list[str]:
    first = dict.fromkeys((requests.CPU, requests.MEMORY))
    return list(first | dict.fromkeys(name for amounts in asked for name in amounts))


def _owner(pod: Pod) -> str | None:
    owner = pod.controller
    return None if owner is None else f"{owner.kind}/{owner.name}"
