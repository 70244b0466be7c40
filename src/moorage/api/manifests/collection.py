"""What was found so far: each object named and checked, none of them twice."""

from collections import Counter
from dataclasses import dataclass, field

from msgspec import structs

from moorage.api import admission, bounds, words
from moorage.api.kinds import WORKLOADS, Kind
from moorage.api.manifests import complaints, decoding
from moorage.api.manifests.complaints import Origin
from moorage.api.meta import KubeObject
from moorage.errors import ManifestError


@dataclass(slots=True)
class Manifest:
    """What was read: the objects in order, and how many of which kinds were left out.

    `workloads` are those that no scheduler reads, because others are made of them: deployments,
    jobs, node pools. `moorage.expansion` does that, and takes `everything`.
    """

    objects: list[KubeObject] = field(default_factory=list)
    workloads: list[KubeObject] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def everything(self) -> list[KubeObject]:
        return [*self.objects, *self.workloads]


class Collection:
    """A manifest that grows, and where each of its objects stands."""

    def __init__(self) -> None:
        self.manifest = Manifest()
        self._origins: dict[tuple[str, str, str], Origin] = {}
        self._generated: Counter[str] = Counter()

    def add(self, origin: Origin, obj: KubeObject, kind: Kind) -> None:
        """Check an object and keep it."""
        if not obj.kind or not obj.api_version:
            obj = structs.replace(obj, kind=kind.name, api_version=kind.api_version)
        obj = self._named(origin, obj, kind)
        meta = obj.metadata
        place = (meta.namespace or "default") if kind.namespaced else ""
        if fault := fault_of(obj):
            who = complaints.who(kind.name, decoding.dump(obj))
            raise complaints.complaint(origin, who, *fault)
        first = self._origins.setdefault((kind.name, place, meta.name), origin)
        if first is not origin:
            who = f"{kind.name} {f'{place}/' if place else ''}{meta.name}"
            raise ManifestError(f"{origin}, {who}: is already defined in {first}")
        workload = kind.name in WORKLOADS
        (self.manifest.workloads if workload else self.manifest.objects).append(obj)

    def _named(self, origin: Origin, obj: KubeObject, kind: Kind) -> KubeObject:
        meta = obj.metadata
        if not f"{meta.namespace}{meta.name}{meta.generate_name}".isprintable():
            # It would reach a terminal, and might steer it.
            what = f"{origin}, {kind.name}, metadata.name: {complaints.shown(meta.name)}"
            raise ManifestError(f"{what} holds characters that cannot be printed")
        if meta.name:
            return obj
        if not meta.generate_name:
            raise ManifestError(f"{origin}, {kind.name}, metadata.name: is missing")
        key = f"{kind.name}/{meta.namespace}/{meta.generate_name}"
        self._generated[key] += 1
        name = f"{meta.generate_name}{self._generated[key]:05}"
        return structs.replace(obj, metadata=structs.replace(meta, name=name))


def fault_of(obj: KubeObject) -> tuple[str, str] | None:
    """The path of the first field that says what cannot be, and what is wrong with it."""
    return admission.bad_quantity(obj) or words.bad_word(obj) or bounds.out_of_bounds(obj)
