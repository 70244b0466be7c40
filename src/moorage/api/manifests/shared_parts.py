"""SharedParts: equal parts of many pods, kept once.

The pods of a workload are equal in nearly everything, and a dump repeats it for each of them. With
one object for all equal parts, 150,000 pods take a third of the memory, and what follows from a
part, such as requests and defaults, is computed once.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moorage.api.meta import Condition, KubeObject
from moorage.api.pod import Pod, PodSpec, PodStatus, Volume

_encode = msgspec.msgpack.Encoder().encode

# The volume that an API server adds last has a generated name, so no other pod has equal volumes.
_TOKEN_VOLUME = "kube-api-access-"


def _fields_except(struct: type[Struct], *own: str) -> Callable[[Any], tuple[Any, ...]]:
    return attrgetter(*(name for name in struct.__struct_fields__ if name not in own))


_shared_of_spec = _fields_except(PodSpec, "node_name", "volumes")
_shared_of_status = _fields_except(PodStatus, "conditions", "start_time")


class SharedParts:
    """The parts of all pods that were read so far, by content."""

    def __init__(self) -> None:
        # By type, because empty parts of all types have the same content.
        self._specs: dict[bytes, PodSpec] = {}
        self._statuses: dict[bytes, PodStatus] = {}
        self._conditions: dict[Condition, Condition] = {}
        self._tuples: dict[bytes, Any] = {}
        self._texts: dict[str | None, Any] = {}
        # What the last pod had, for the next one of its workload: comparing is quicker than
        # encoding.
        self._last_same: tuple[Any, ...] = ()
        self._last_spec: tuple[Any, PodSpec] = ((), PodSpec())
        self._last_status: tuple[Any, PodStatus] = ((), PodStatus())

    def share(self, obj: KubeObject) -> KubeObject:
        """The object; a pod has the parts of earlier pods where they are equal."""
        return self._pod(obj) if isinstance(obj, Pod) else obj

    def _pod(self, pod: Pod) -> Pod:
        meta, spec, status, first = pod.metadata, pod.spec, pod.status, self._texts.setdefault
        same = (
            pod.api_version,
            pod.kind,
            meta.namespace,
            meta.generate_name,
            meta.labels,
            meta.annotations,
            meta.owner_references,
        )
        if same != self._last_same:
            self._last_same = self._tuples.setdefault(_encode(same), same)
        version, kind, namespace, prefix, labels, annotations, owners = self._last_same
        # Each pod has a node of its own, and volumes with generated names.
        fields = _shared_of_spec(spec)
        if fields != self._last_spec[0]:
            shared = replace(spec, node_name="", volumes=())
            shared = self._specs.setdefault(_encode(shared), shared)
            self._last_spec = (_shared_of_spec(shared), shared)
        shared = self._last_spec[1]
        node, volumes = spec.node_name, spec.volumes
        created_at, started_at = meta.creation_timestamp, status.start_time
        return Pod(
            api_version=version,
            kind=kind,
            metadata=replace(
                meta,
                namespace=namespace,
                generate_name=prefix,
                creation_timestamp=first(created_at, created_at),
                labels=labels,
                annotations=annotations,
                owner_references=owners,
            ),
            spec=replace(shared, node_name=first(node, node), volumes=self._volumes(volumes)),
            status=self._status(status, first(started_at, started_at)),
        )

    def _volumes(self, volumes: tuple[Volume, ...]) -> tuple[Volume, ...]:
        if not volumes or volumes[-1].name.startswith(_TOKEN_VOLUME):
            return volumes
        return self._tuples.setdefault(_encode(volumes), volumes)  # type: ignore[no-any-return]  # tuples of all kinds

    def _status(self, status: PodStatus, start_time: str | None) -> PodStatus:
        conditions = status.conditions
        fields = _shared_of_status(status)
        if fields != self._last_status[0]:
            shared = replace(status, conditions=(), start_time=None)
            shared = self._statuses.setdefault(_encode(shared), shared)
            self._last_status = (_shared_of_status(shared), shared)
        shared = self._last_status[1]
        if not conditions and start_time is None:
            return shared
        known, first = self._conditions, self._texts.setdefault
        found = []
        for each in conditions:
            condition = known.get(each)
            if condition is None:
                condition = replace(
                    each,
                    type=first(each.type, each.type),
                    status=first(each.status, each.status),
                    last_transition_time=first(
                        each.last_transition_time, each.last_transition_time
                    ),
                )
                known[condition] = condition
            found.append(condition)
        return replace(shared, conditions=tuple(found), start_time=start_time)
