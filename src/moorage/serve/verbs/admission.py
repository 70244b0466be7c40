"""What other objects have to say about a new one: priority classes, default storage classes."""

from collections.abc import Iterator

import msgspec

from moorage.api import admission, defaults
from moorage.api.admission import PriorityClasses
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.policy import PriorityClass
from moorage.api.storage import StorageClass
from moorage.errors import ManifestError
from moorage.serve import status_errors
from moorage.serve.controllers.objects import Object
from moorage.serve.resources import PODS, PRIORITY_CLASSES, STORAGE_CLASSES
from moorage.serve.store import Store


def pod(store: Store, obj: Object, read: KubeObject) -> None:
    """Fill in priority, class and preemption policy, and resources of the pod as a whole."""
    assert isinstance(read, Pod)
    spec = obj["spec"]
    if read.spec.priority is not None and not read.spec.priority_class_name:
        default = _classes(store).default
        computed = default.value if default else 0
        if read.spec.priority != computed:
            raise status_errors.forbidden(
                PODS,
                read.name,
                f"the integer value of priority ({read.spec.priority}) must not be provided in pod "
                f"spec; priority admission controller computed {computed} from the given "
                "PriorityClass name",
            )
    classes = _classes(store)
    wanted = read.spec.priority_class_name
    if wanted and wanted not in classes.by_name:
        why = f"no PriorityClass with name {wanted} was found"
        raise status_errors.forbidden(PODS, read.name, why)
    try:
        name, priority, policy = admission.priority(read, classes)
    except ManifestError as error:
        why = str(error).partition("spec.priorityClassName: ")[2]
        raise status_errors.forbidden(PODS, read.name, why) from None
    if name:
        spec["priorityClassName"] = name
    spec["priority"] = priority
    spec["preemptionPolicy"] = policy
    if read.spec.resources is not None:
        whole = defaults.pod(read, classes).spec.resources
        spec["resources"] = {**spec["resources"], **msgspec.to_builtins(whole)}


def priority_class(store: Store, read: KubeObject) -> None:
    """Refuse a class with a reserved name, or a second default."""
    assert isinstance(read, PriorityClass)
    try:
        admission.check_priority_class(read)
    except ManifestError as error:
        why = str(error).partition(", ")[2]
        raise status_errors.forbidden(PRIORITY_CLASSES, read.name, why) from None
    if read.global_default:
        for other in _priority_classes(store):
            if other.global_default and other.name != read.name:
                why = f"PriorityClass {other.name} is already marked as default. "
                why += "Only one default can exist"
                raise status_errors.forbidden(PRIORITY_CLASSES, read.name, why)


def claim(store: Store, obj: Object) -> None:
    """Give a claim that names no class the default one."""
    spec = obj["spec"]
    annotated = defaults.CLAIM_CLASS_ANNOTATION in obj["metadata"].get("annotations", {})
    if "storageClassName" not in spec and not annotated:
        found = defaults.default_storage_class(
            msgspec.convert(each, StorageClass) for each in store.each(STORAGE_CLASSES)
        )
        if found is not None:
            spec["storageClassName"] = found


def _classes(store: Store) -> PriorityClasses:
    return PriorityClasses(_priority_classes(store))


def _priority_classes(store: Store) -> Iterator[PriorityClass]:
    for each in store.each(PRIORITY_CLASSES):
        yield msgspec.convert(each, PriorityClass)
