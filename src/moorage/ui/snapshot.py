"""ClusterSnapshot: the objects of a moment, as the scheduler reads them.

`DryRun` has the objects and the node table; nothing is counted here a second time.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from moorage.api.config import Source
from moorage.api.config import load as load_config
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core.observations import Added
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError
from moorage.explaining import grouping
from moorage.explaining.dry_run import DryRun
from moorage.explaining.explanation import Explanation
from moorage.explaining.grouping import ReasonGroup
from moorage.nodes.info import NodeInfo
from moorage.nodes.table import NodeTable
from moorage.planning.prices import PriceList
from moorage.planning.replay import without_template
from moorage.planning.what_if import Change, WhatIfAnswer, what_if
from moorage.ui import new_configs

CORDONED, TAINTED, NOT_READY = 1, 2, 4
# Taints that repeat what the other two states say.
STATE_TAINTS = (
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
)
# How many different pending pods are explained; each takes tens of milliseconds on 5,000 nodes.
MOST_EXPLAINED = 100

_DIGITS = re.compile(r"(\d+)")


class ClusterSnapshot:
    """A cluster that does not change."""

    def __init__(
        self,
        objects: Iterable[Mapping[str, Any] | KubeObject],
        config: Source = None,
        *,
        title: str = "",
        version: int = 0,
        options: Sequence[str] = ("-f", "cluster.json"),
        prices: PriceList | None = None,
        run: DryRun | None = None,
    ) -> None:
        self.objects = list(objects)
        self.run = DryRun(self.objects, config) if run is None else run
        self.config = config
        self.title = title
        self.version = version
        # The time of a recording.
        self.at: float | None = None
        # How commands read the same cluster; empty if they cannot.
        self.options = tuple(options)
        self.prices = prices
        # Answers as JSON, by question and arguments.
        self.answers: dict[tuple[str, ...], bytes] = {}
        self._tried: tuple[tuple[Change, ...], str, WhatIfAnswer] | None = None

    @classmethod
    def of_api_server(
        cls, objects: Iterable[KubeObject], config: Source = None, *, title: str, version: int
    ) -> "ClusterSnapshot":
        """A snapshot of complete objects: no defaults are set, and no pods of workloads created."""
        scheduler = Scheduler(load_config(config))
        kept = []
        for obj in objects:
            scheduler.observe(Added(obj), 0.0)
            kept.append(without_template(obj))
        run = DryRun.observed(kept, scheduler, config)
        return cls(kept, config, title=title, version=version, run=run)

    @property
    def table(self) -> NodeTable:
        return self.run.scheduler.cluster.table

    @cached_property
    def rows(self) -> list[int]:
        """The rows of all nodes; numbers in names are compared as numbers."""
        table = self.table
        found: list[int] = np.flatnonzero(table.active_rows).tolist()
        return sorted(found, key=lambda row: natural(table.name(row)))

    def infos(self) -> Iterator[NodeInfo]:
        """Every node with its pods, in the order of `rows`."""
        return map(self.table.info, self.rows)

    def node(self, name: str) -> NodeInfo:
        """A node by name; raises InputError."""
        row = self.table.row_of.get(name)
        if row is None or self.table.nodes[row] is None:
            raise InputError(f"there is no node {name!r}")
        return self.table.info(row)

    @cached_property
    def pods(self) -> dict[str, Pod]:
        """All pods that have not ended, by key."""
        return {pod.key: pod for pod in self.run.pods if not pod.is_terminal}

    @cached_property
    def pending(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if not pod.node_name]

    @cached_property
    def pending_groups(self) -> tuple[list[ReasonGroup], list[str]]:
        """Pending pods by reason, and those that are not explained because there are too many.

        One pod of each template is explained, for all that also use the same claims.
        """
        alike: dict[object, list[Pod]] = {}
        for pod in self.pending:
            alike.setdefault(self._kind_of(pod), []).append(pod)
        pods = {same[0].key: [pod.key for pod in same] for same in alike.values()}
        chosen = [same[0] for same in alike.values()][:MOST_EXPLAINED]
        groups = grouping.by_reason(self.run, chosen)
        for group in groups:
            group.pods = [key for first in group.pods for key in pods[first]]
        groups.sort(key=lambda group: (group.is_placed, -len(group.pods), group.reason))
        left_out = list(alike.values())[MOST_EXPLAINED:]
        return groups, [pod.key for same in left_out for pod in same]

    def _kind_of(self, pod: Pod) -> object:
        claims = [volume.persistent_volume_claim for volume in pod.spec.volumes]
        status = pod.status
        return (
            self.run.scheduler.templates.of(pod).serial,
            tuple(claim.claim_name for claim in claims if claim is not None),
            status.nominated_node_name,
            repr(status.resource_claim_statuses),
            pod.is_terminating,
        )

    def try_out(self, changes: tuple[Change, ...], new_config: str = "") -> WhatIfAnswer:
        """What changes would do; the latest answer is kept, for another colour of the map."""
        if self._tried is None or self._tried[:2] != (changes, new_config):
            switched = new_configs.read(new_config) if new_config else None
            found = what_if(
                self.objects, changes, self.config, new_config=switched, prices=self.prices
            )
            self._tried = changes, new_config, found
        return self._tried[2]

    def explain(self, key: str) -> Explanation:
        """Why a pod is pending, or runs where it runs; raises InputError."""
        pod = self.pods.get(key)
        if pod is None:
            raise InputError(f"there is no pod {key!r}")
        return self.run.explain(pod)


def state_of(node: Node) -> int:
    """CORDONED, TAINTED and NOT_READY, added up."""
    ready = next((each for each in node.status.conditions if each.type == "Ready"), None)
    return (
        CORDONED * node.spec.unschedulable
        + TAINTED * any(taint.key not in STATE_TAINTS for taint in node.spec.taints)
        + NOT_READY * (ready is not None and ready.status != "True")
    )


@lru_cache(maxsize=100_000)  # A recording sorts the same names for every frame.
def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A sort key that puts node-9 before node-10."""
    return tuple(
        (int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name) if part
    )
