"""Admission: checks and fields of a new object that depend on other objects."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from moorage.api import admission, claims, defaults, limit_ranges, runtime_classes
from moorage.api.admission import PriorityClasses
from moorage.api.devices import ResourceClaim, ResourceClaimTemplate
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.pod_groups import PodGroup
from moorage.api.policy import PriorityClass
from moorage.api.storage import StorageClass
from moorage.cluster import status_errors
from moorage.cluster.objects import validation
from moorage.cluster.resources import (
    LIMIT_RANGES,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    WORKLOADS,
    Resource,
)
from moorage.cluster.store import Store
from moorage.controllers import objects
from moorage.controllers.objects import Object
from moorage.errors import ManifestError

ADMIN_ACCESS = "resource.kubernetes.io/admin-access"


def admit_pod(store: Store, obj: Object, typed: KubeObject) -> None:
    """Set what limit ranges, priority classes and runtime classes define for a new pod."""
    assert isinstance(typed, Pod)
    spec = obj["spec"]
    limit_ranges.set_defaults(obj, _limit_ranges(store, typed.namespace))
    _apply_runtime_class(store, obj)
    classes = _parsed_classes(store.bodies(PRIORITY_CLASSES))
    class_name = typed.spec.priority_class_name
    if typed.spec.priority is not None and not class_name:
        computed = classes.default.value if classes.default else 0
        if typed.spec.priority != computed:
            raise status_errors.forbidden(
                PODS,
                typed.name,
                f"the integer value of priority ({typed.spec.priority}) must not be provided in "
                f"pod spec; priority admission controller computed {computed} from the given "
                "PriorityClass name",
            )
    if class_name and class_name not in classes.by_name:
        why = f"no PriorityClass with name {class_name} was found"
        raise status_errors.forbidden(PODS, typed.name, why)
    try:
        name, priority, policy = admission.priority(typed, classes)
    except ManifestError as error:
        why = str(error).partition("spec.priorityClassName: ")[2]
        raise status_errors.forbidden(PODS, typed.name, why) from None
    computed_policy = admission.PREEMPT_LOWER_PRIORITY if not name else policy
    if typed.spec.preemption_policy not in (None, computed_policy):
        raise status_errors.forbidden(
            PODS,
            typed.name,
            f"the string value of PreemptionPolicy ({typed.spec.preemption_policy}) must not be "
            f"provided in pod spec; priority admission controller computed {computed_policy} from "
            "the given PriorityClass name",
        )
    if name:
        spec["priorityClassName"] = name
    spec["priority"] = priority
    spec["preemptionPolicy"] = policy
    if typed.spec.resources is not None:
        resources = defaults.pod(typed, classes).spec.resources
        spec["resources"] = {**spec["resources"], **msgspec.to_builtins(resources)}


def _apply_runtime_class(store: Store, obj: Object) -> None:
    spec, name = obj["spec"], objects.name(obj)
    found = None
    if class_name := spec.get("runtimeClassName"):
        found = store.find(RUNTIME_CLASSES, "", class_name)
        if found is None:
            raise status_errors.forbidden(PODS, name, runtime_classes.not_found(class_name))
    if why := runtime_classes.apply(spec, found):
        raise status_errors.forbidden(PODS, name, why)


def check_limits(store: Store, resource: Resource, obj: Object) -> None:
    """Reject a pod or claim outside of the bounds of its namespace."""
    ranges = _limit_ranges(store, objects.namespace(obj))
    if not ranges:
        return
    check = limit_ranges.violations if resource is PODS else limit_ranges.claim_violations
    if why := limit_ranges.refusal(check(obj, ranges)):
        raise status_errors.forbidden(resource, objects.name(obj), why)


def _limit_ranges(store: Store, namespace: str) -> list[Object]:
    if not store.count(LIMIT_RANGES):
        return []
    return [each for each in store.each(LIMIT_RANGES) if objects.namespace(each) == namespace]


def admit_pod_group(store: Store, obj: Object, typed: KubeObject) -> None:
    """Set the priority of a group; reject one whose Workload or template does not exist."""
    assert isinstance(typed, PodGroup)
    spec, ref = obj["spec"], typed.spec.pod_group_template_ref
    if ref is not None and ref.workload is not None:
        name, template = ref.workload.workload_name, ref.workload.pod_group_template_name
        workload = store.find(WORKLOADS, typed.namespace, name)
        if workload is None or objects.is_terminating(workload):
            why = f'workload "{name}" not found' if workload is None else f"{name} is being deleted"
            raise status_errors.forbidden(POD_GROUPS, typed.name, why)
        listed = workload["spec"]["podGroupTemplates"]
        if template not in [each["name"] for each in listed]:
            why = f'workload "{name}" has no podGroupTemplate "{template}"'
            raise status_errors.forbidden(POD_GROUPS, typed.name, why)
    try:
        class_name, priority = admission.group_priority(
            typed, _parsed_classes(store.bodies(PRIORITY_CLASSES))
        )
    except ManifestError as error:
        why = str(error).partition("spec.priorityClassName: ")[2]
        raise status_errors.forbidden(POD_GROUPS, typed.name, why) from None
    if class_name:
        spec["priorityClassName"] = class_name
    spec["priority"] = priority


def admit_priority_class(store: Store, typed: KubeObject) -> None:
    """Reject a class with a reserved name, or a second default."""
    assert isinstance(typed, PriorityClass)
    try:
        admission.check_priority_class(typed)
    except ManifestError as error:
        why = str(error).partition(", ")[2]
        raise status_errors.forbidden(PRIORITY_CLASSES, typed.name, why) from None
    check_only_default(typed, _priority_classes(store))


def check_only_default(new: PriorityClass, known: Iterable[PriorityClass]) -> None:
    """Raise ForbiddenError for a second default class."""
    if new.global_default:
        for other in known:
            if other.global_default and other.name != new.name:
                why = f"PriorityClass {other.name} is already marked as default. "
                why += "Only one default can exist"
                raise status_errors.forbidden(PRIORITY_CLASSES, new.name, why)


def set_default_storage_class(store: Store, obj: Object) -> None:
    """Set the default storage class of a claim that names none."""
    spec = obj["spec"]
    annotated = claims.CLASS in obj["metadata"].get("annotations", {})
    if "storageClassName" not in spec and not annotated:
        found = defaults.default_storage_class(
            msgspec.convert(each, StorageClass) for each in store.each(STORAGE_CLASSES)
        )
        if found is not None:
            spec["storageClassName"] = found


def admit_claim(store: Store, resource: Resource, typed: KubeObject) -> None:
    """Reject admin access to devices outside of namespaces that are marked for it."""
    assert isinstance(typed, ResourceClaim | ResourceClaimTemplate)
    if isinstance(typed, ResourceClaimTemplate):
        spec, path = typed.spec.spec, "spec.spec"
    else:
        spec, path = typed.spec, "spec"
    namespace = store.find(NAMESPACES, "", typed.namespace) or {"metadata": {}}
    if objects.labels(namespace).get(ADMIN_ACCESS) == "true":
        return
    for i, request in enumerate(spec.devices.requests or ()):
        if request.exactly is not None and request.exactly.admin_access:
            field = f"{path}.devices.requests[{i}].exactly.adminAccess"
            rule = f"admin access to devices requires the `{ADMIN_ACCESS}: true` label on the "
            rule += "containing namespace"
            raise validation.may_not_change(resource, typed.name, field, rule)


@lru_cache(maxsize=4)
def _parsed_classes(bodies: tuple[bytes, ...]) -> PriorityClasses:
    """All priority classes; they rarely change, and every pod needs them."""
    return PriorityClasses(msgspec.json.decode(each, type=PriorityClass) for each in bodies)


def _priority_classes(store: Store) -> Iterator[PriorityClass]:
    for each in store.each(PRIORITY_CLASSES):
        yield msgspec.convert(each, PriorityClass)
