"""PodTemplate: pods that are equal in everything that plugins read share one.

A workload's pods differ in name, UID, times and claims; nearly all else is the same. So what a
decision needs of a pod is compiled once for all its equals, and verdicts and scores are kept per
template.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Protocol

import msgspec

from moorage.api.pod import Pod, PodSpec, Volume
from moorage.nodes import volumes
from moorage.nodes.usage import Usage

_encode = msgspec.msgpack.Encoder().encode

# Where the pod runs is what a decision is to find out, so it does not tell templates apart; nor
# does its group, whose members are decided one by one: gangs of one job have one template.
_INDECISIVE: dict[str, Any] = {"node_name": "", "volumes": (), "scheduling_group": None}
# From which the requests of a pod that is resized are computed.
resize_fields = attrgetter(
    "container_statuses", "init_container_statuses", "resources", "allocated_resources"
)

RESIZE_PENDING = "PodResizePending"

MOST_TEMPLATES = 20_000


@dataclass(slots=True, eq=False)
class PodTemplate:
    """What plugins may read of a pod, and what it takes of a node."""

    serial: int
    exemplar: Pod
    usage: Usage
    # How often it came up, with a pod that was seen or decided upon; most do once or often.
    seen: int = 0
    # What plugins make of the template, each under a name of its own.
    compiled: dict[str, Any] = field(default_factory=dict)


class TemplateSource(Protocol):
    """Something that knows the templates of pods."""

    def of(self, pod: Pod) -> PodTemplate:
        """The template of a pod."""


class Templates:
    """All templates seen lately, by content."""

    def __init__(self) -> None:
        self._by_content: dict[bytes, PodTemplate] = {}
        self._serial = 0

    def of(self, pod: Pod) -> PodTemplate:
        """The template of a pod."""
        content = _content(pod)
        template = self._by_content.get(content)
        if template is None:
            if len(self._by_content) >= MOST_TEMPLATES:
                for oldest in list(self._by_content)[: MOST_TEMPLATES // 2]:
                    del self._by_content[oldest]
            self._serial += 1
            template = PodTemplate(self._serial, _unplaced(pod), Usage.of(pod))
            self._by_content[content] = template
        template.seen += 1
        return template

    def of_each(self, pods: Iterable[Pod]) -> list[PodTemplate]:
        """The templates of many pods; those that share their parts are recognised by them."""
        found, known = [], dict[int, tuple[Any, PodTemplate]]()
        for pod in pods:
            parts, key = _parts(pod), id(pod.spec.containers)  # Not reused: they are kept.
            before = known.get(key)
            if before is not None and before[0] == parts:
                template = before[1]
                template.seen += 1
            else:
                count, template = len(self._by_content), self.of(pod)
                if len(self._by_content) < count:
                    known.clear()  # Some are not templates any more.
                known[key] = (parts, template)
            found.append(template)
        return found


_KEPT = tuple(name for name in PodSpec.__struct_fields__ if name not in _INDECISIVE)
_decisive_fields = attrgetter(*_KEPT)


def _parts(pod: Pod) -> tuple[Any, ...]:
    """Parts of a pod: if they are equal, so is the content."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    return (
        meta.namespace,
        meta.labels,
        meta.annotations,
        meta.owner_references,
        _decisive_fields(spec),
        _volumes(pod) if spec.volumes else (),
        resize_fields(status),
        pod.condition(RESIZE_PENDING),
    )


def are_alike(pod: Pod, was: Pod) -> bool:
    """Whether two versions of a pod have one template, as far as that is quickly found out."""
    meta, was_meta = pod.metadata, was.metadata
    return (
        pod.spec == was.spec
        and meta.labels == was_meta.labels
        and meta.annotations == was_meta.annotations
        and meta.owner_references == was_meta.owner_references
        and have_same_usage(pod, was)
    )


def have_same_usage(pod: Pod, was: Pod) -> bool:
    """Whether the parts of a status are the same that a template reads."""
    status, before = pod.status, was.status
    if status is before:
        return True
    return resize_fields(status) == resize_fields(before) and (
        status.conditions == before.conditions
        or pod.condition(RESIZE_PENDING) == was.condition(RESIZE_PENDING)
    )


def _unplaced(pod: Pod) -> Pod:
    """The pod without its node: one that runs already may be the first of its equals to be seen,
    and what is asked about it is kept for those that still wait."""
    if not pod.node_name:
        return pod
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))


def _content(pod: Pod) -> bytes:
    meta, status, owner = pod.metadata, pod.status, pod.controller
    held = status.container_statuses or status.init_container_statuses
    resized = held or status.resources is not None
    content = (
        meta.namespace,
        meta.labels,
        meta.annotations,
        None if owner is None else (owner.api_version, owner.kind, owner.name),
        msgspec.structs.replace(pod.spec, **_INDECISIVE),
        _volumes(pod) if pod.spec.volumes else (),
        resize_fields(status) if resized else None,
        pod.condition(RESIZE_PENDING) if status.conditions else None,
    )
    try:
        return _encode(content)
    except OverflowError:  # A quantity may be a number of any size.
        return repr(content).encode()


def _volumes(pod: Pod) -> list[Any]:
    """The volumes that say something about the node, without their (often random) names.

    Names of claims are left out, too: what a plugin finds there depends on more than the pod. So
    the pods of a StatefulSet, each with a claim of its own, have one template.
    """
    return [_nameless(volume) for volume in pod.spec.volumes if not volumes.is_bare(volume)]


def _nameless(volume: Volume) -> Volume:
    claim = volume.persistent_volume_claim
    if claim is not None:
        claim = msgspec.structs.replace(claim, claim_name="")
    return msgspec.structs.replace(volume, name="", persistent_volume_claim=claim)
