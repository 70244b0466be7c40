"""Moorage: kube-scheduler's decisions over every node, explained, with or without a cluster.

    from moorage import Simulation, explain, capacity, drain, run_sweep

The public API is the names in `__all__`; each is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from moorage.version import __version__

if TYPE_CHECKING:
    from moorage.core.scheduler import Scheduler
    from moorage.explaining import Explanation, explain
    from moorage.planning.add_nodes import add_nodes
    from moorage.planning.capacity import capacity
    from moorage.planning.compact import compact
    from moorage.planning.compare import compare
    from moorage.planning.drain import drain
    from moorage.planning.what_if import what_if
    from moorage.sim.results.result import Result
    from moorage.sim.run import Simulation
    from moorage.sweeping.sweep import run_sweep

__all__ = [
    "Explanation",
    "Result",
    "Scheduler",
    "Simulation",
    "__version__",
    "add_nodes",
    "capacity",
    "compact",
    "compare",
    "drain",
    "explain",
    "run_sweep",
    "what_if",
]

_HOMES = {
    "Explanation": "moorage.explaining.explanation",
    "Result": "moorage.sim.results.result",
    "Scheduler": "moorage.core.scheduler",
    "Simulation": "moorage.sim.run",
    "add_nodes": "moorage.planning.add_nodes",
    "capacity": "moorage.planning.capacity",
    "compact": "moorage.planning.compact",
    "compare": "moorage.planning.compare",
    "drain": "moorage.planning.drain",
    "explain": "moorage.explaining.dry_run",
    "run_sweep": "moorage.sweeping.sweep",
    "what_if": "moorage.planning.what_if",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'moorage' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
