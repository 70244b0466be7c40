"""Claims of generic ephemeral volumes: made for a pod, owned by it, gone with it."""

from collections.abc import Iterator

from moorage.serve.controllers import objects, ownership
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.view import View
from moorage.serve.controllers.writes import Create, Write

CLAIM = "PersistentVolumeClaim"


def reconcile(pod: Object, view: View, now: float) -> Iterator[Write]:
    """Make the claims that a pod's volumes describe."""
    del now  # Nothing here depends on time.
    if objects.is_terminating(pod):
        return
    for volume in volumes(pod):
        claim = claim_for(pod, volume)
        if view.get(CLAIM, objects.namespace(pod), objects.name(claim)) is None:
            yield Create(claim)


def volumes(pod: Object) -> list[Object]:
    """The volumes of a pod that bring their claim along."""
    return [each for each in objects.spec(pod).get("volumes") or () if each.get("ephemeral")]


def claim_for(pod: Object, volume: Object) -> Object:
    """The claim of a volume, under the name by which everybody finds it."""
    template = volume["ephemeral"].get("volumeClaimTemplate") or {}
    meta = template.get("metadata") or {}
    metadata = {
        "name": f"{objects.name(pod)}-{volume.get('name', '')}",
        "namespace": objects.namespace(pod),
        "ownerReferences": [ownership.reference(pod)],
    }
    metadata |= {key: meta[key] for key in ("labels", "annotations") if meta.get(key)}
    spec = template.get("spec") or {}
    return {"apiVersion": "v1", "kind": CLAIM, "metadata": metadata, "spec": spec}
