"""The deletion of a namespace: first its pods, then all other objects, then the namespace.

The conditions of its status say what is left, and which finalizers hold it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from moorage.api import timestamps
from moorage.controllers import objects, resource_quota
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.writes import BACKGROUND, Delete, Update, Write

NAMESPACE = "Namespace"
FINALIZER = "kubernetes"

# The conditions of a deletion without problems: type, reason and message.
_FINE = (
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    (
        "NamespaceFinalizersRemaining",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
)


def reconcile(namespace: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Delete the content of a namespace that is being deleted, then remove its finalizer."""
    if not objects.is_terminating(namespace):
        return
    content = index.in_namespace(objects.name(namespace))
    pods = [obj for obj in content if objects.kind_of(obj) == "Pod"]
    for obj in pods or content:
        if not objects.is_terminating(obj):
            yield Delete(obj, propagation=BACKGROUND)
    changed = objects.with_status(namespace, phase="Terminating")
    # As in Kubernetes, what remains is counted only once there are no pods.
    counted = [] if pods else content
    changed = _with_conditions(changed, counted, index, timestamps.to_text(now))
    if content:
        if changed != namespace:
            yield Update(changed)
        return
    finalizers = objects.spec(namespace).get("finalizers") or []
    if left := [each for each in finalizers if each != FINALIZER]:
        yield Update(objects.with_spec(changed, finalizers=left))
    else:
        yield Update(objects.without_spec(changed, "finalizers"))


def _with_conditions(
    namespace: Object, content: Sequence[Object], index: ObjectIndex, at: str
) -> Object:
    definitions = index.all(resource_quota.DEFINITION)
    kinds = Counter(
        resource_quota.resource_name(objects.kind_of(obj), definitions) for obj in content
    )
    finalizers = Counter(each for obj in content for each in objects.finalizers(obj))
    remaining = {}
    if kinds:
        # Kubernetes writes the resource and its group, which is empty for many.
        texts = [
            f"{name if '.' in name else name + '.'} has {count} resource instances"
            for name, count in sorted(kinds.items())
        ]
        text = f"Some resources are remaining: {', '.join(texts)}"
        remaining["NamespaceContentRemaining"] = ("SomeResourcesRemain", text)
    if finalizers:
        texts = [
            f"{name} in {count} resource instances" for name, count in sorted(finalizers.items())
        ]
        text = f"Some content in the namespace has finalizers remaining: {', '.join(texts)}"
        remaining["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", text)
    for type_, reason, message in _FINE:
        failed = type_ in remaining
        reason, message = remaining.get(type_, (reason, message))
        state = {"status": str(failed), "reason": reason, "message": message}
        namespace = objects.with_condition(namespace, at, type=type_, **state)
    return namespace
