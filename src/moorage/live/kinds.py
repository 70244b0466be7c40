"""Which kinds the live scheduler watches: nodes, pods, and what its plugins read."""

from collections.abc import Mapping
from typing import Any

from moorage.api.kinds import KINDS, Kind

# A scheduler that does not see these must not act: it would fill nodes that are full.
INDISPENSABLE = ("Node", "Pod")


def watched(plugins: Mapping[str, type[Any]]) -> list[tuple[Kind, tuple[str, ...]]]:
    """The kinds to watch, each with the names of the plugins that read it; pods come last.

    A plugin that does not declare `reads_kinds` may read any kind.
    """
    found = []
    for kind in KINDS.values():
        declared = [name for name, cls in plugins.items() if kind.name in _reads_kinds(cls)]
        undeclared = [name for name, cls in plugins.items() if not hasattr(cls, "reads_kinds")]
        if declared or undeclared or kind.name in INDISPENSABLE:
            found.append((kind, (*declared, *undeclared)))
    return found


def _reads_kinds(plugin: type[Any]) -> tuple[str, ...]:
    return getattr(plugin, "reads_kinds", ())
