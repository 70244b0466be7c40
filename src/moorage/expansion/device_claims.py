"""The device claims that a controller creates for pods, for questions that have no controller."""

from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from moorage.api import defaults
from moorage.api.devices import ResourceClaim, ResourceClaimTemplate
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.controllers import claims
from moorage.controllers.claims import CreateClaim, SetPodClaims
from moorage.expansion.templates import NameGenerator

T = TypeVar("T", bound=KubeObject)


def with_claims(objects: Iterable[KubeObject]) -> list[KubeObject]:
    """The objects, and the claims of their pods from templates; `objects` have their defaults.

    A pod whose template is missing stays as it is: the scheduler's message says what it lacks.
    """
    objects = list(objects)
    templates = _by_key(objects, ResourceClaimTemplate)
    if not templates:
        return objects
    known, names = _by_key(objects, ResourceClaim), NameGenerator()
    owned: dict[str, list[ResourceClaim]] = {}
    for claim in known.values():
        if (owner := claims.owning_pod(claim)) is not None:
            owned.setdefault(owner.uid, []).append(claim)
    found: list[KubeObject] = []
    made: list[KubeObject] = []
    for obj in objects:
        if isinstance(obj, Pod) and obj.spec.resource_claims and not obj.node_name:
            obj, new = _with_own(obj, known, templates, owned.get(obj.uid, []), names)
            made += new
        found.append(obj)
    return [*made, *found]


def _with_own(
    pod: Pod,
    known: dict[str, ResourceClaim],
    templates: dict[str, ResourceClaimTemplate],
    owned: list[ResourceClaim],
    names: NameGenerator,
) -> tuple[Pod, list[ResourceClaim]]:
    """A pod that names its claims, and those of them that are new."""
    new: list[ResourceClaim] = []

    def decisions() -> Iterable[claims.Decision]:
        return claims.for_pod(
            pod,
            lambda name: known.get(f"{pod.namespace}/{name}"),
            lambda name: templates.get(f"{pod.namespace}/{name}"),
            [*owned, *new],
        )

    for decision in decisions():
        if isinstance(decision, CreateClaim):
            meta = decision.claim.metadata
            name = names.fresh_of(pod, meta.generate_name)
            named = replace(decision.claim, metadata=replace(meta, name=name))
            new.append(defaults.identity(named))
    for decision in decisions():
        if isinstance(decision, SetPodClaims):
            status = replace(pod.status, resource_claim_statuses=decision.statuses)
            pod = replace(pod, status=status)
    return pod, new


def _by_key(objects: Iterable[KubeObject], kind: type[T]) -> dict[str, T]:
    return {obj.key: obj for obj in objects if isinstance(obj, kind)}
