"""Moorage: kube-scheduler's decisions over every node, explained, with or without a cluster.

    from moorage import Simulation, explain

Only the names listed here are promised; each is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from moorage.version import __version__

if TYPE_CHECKING:
    from moorage.core.scheduler import Scheduler
    from moorage.explaining import Explanation, explain
    from moorage.sim.run import Simulation

__all__ = ["Explanation", "Scheduler", "Simulation", "__version__", "explain"]

_HOMES = {
    "Explanation": "moorage.explaining.explanation",
    "Scheduler": "moorage.core.scheduler",
    "Simulation": "moorage.sim.run",
    "explain": "moorage.explaining.dry_run",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'moorage' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
