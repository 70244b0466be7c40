"""Namespaces: one that is being deleted takes everything in it along, and ends last."""

from collections.abc import Iterator

from moorage.serve.controllers import objects
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.view import View
from moorage.serve.controllers.writes import Delete, Update, Write

KIND = "Namespace"
FINALIZER = "kubernetes"


def reconcile(namespace: Object, view: View, now: float) -> Iterator[Write]:
    """Empty a namespace that is being deleted, then let it go."""
    del now  # Nothing here depends on time.
    if not objects.is_terminating(namespace):
        return
    if objects.status(namespace).get("phase") != "Terminating":
        namespace = objects.with_status(namespace, phase="Terminating")
        yield Update(namespace)
    inside = view.within(objects.name(namespace))
    for obj in inside:
        if not objects.is_terminating(obj):
            yield Delete(obj)
    if not inside:
        held = objects.spec(namespace).get("finalizers") or []
        left = [each for each in held if each != FINALIZER]
        yield Update(objects.with_spec(namespace, finalizers=left))
