"""Which kinds the live scheduler watches: nodes, pods, and what its plugins read."""

from collections.abc import Mapping
from typing import Any

from moorage.api.config import feature_gates
from moorage.api.config.plugin_sets import NO_GATES
from moorage.api.kinds import ADMISSION, KINDS, Kind

# A scheduler that does not see these must not act: it would fill nodes that are full.
INDISPENSABLE = ("Node", "Pod")


# Kinds that an API server serves only with a feature gate; the core reads them.
GATED = {"PodGroup": feature_gates.GENERIC_WORKLOAD}
# Kinds that most clusters do not serve: watched for plugins that declare them.
CUSTOM = ("Queue", "ElasticQuota")


def watched(
    plugins: Mapping[str, type[Any]], gates: Mapping[str, bool] = NO_GATES
) -> list[tuple[Kind, tuple[str, ...]]]:
    """The kinds to watch, each with the names of the plugins that read it; pods come last.

    A plugin that does not declare `reads_kinds` may read any kind.
    """
    declarations = {name: getattr(cls, "reads_kinds", None) for name, cls in plugins.items()}
    undeclared = [name for name, read in declarations.items() if read is None]
    found = []
    for kind in KINDS.values():
        if kind.name in GATED and not gates.get(GATED[kind.name]):
            continue
        declared = [name for name, read in declarations.items() if kind.name in (read or ())]
        if kind.name in (*CUSTOM, *ADMISSION) and not declared:
            continue
        if declared or undeclared or kind.name in (*INDISPENSABLE, *GATED):
            found.append((kind, (*declared, *undeclared)))
    return found
