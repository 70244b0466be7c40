"""What an API server asks at its door: are the quantities quantities, and how important is this?

A scheduler reads only `spec.priority` and `spec.preemptionPolicy`; this is where they come from
for pods that nobody admitted yet.
"""

import re
from collections.abc import Iterable, Mapping

from moorage.api import quantity, workloads
from moorage.api.meta import KubeObject, ObjectMeta
from moorage.api.node import Node
from moorage.api.node_pool import NodePool
from moorage.api.pod import Pod, ResourceRequirements
from moorage.api.policy import PriorityClass
from moorage.api.quantity import Quantity
from moorage.api.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from moorage.errors import ManifestError

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}


class PriorityClasses:
    """All priority classes by name, the system's own among them, and the default one."""

    def __init__(self, classes: Iterable[PriorityClass] = ()) -> None:
        system = (
            PriorityClass(metadata=ObjectMeta(name=name), value=value)
            for name, value in SYSTEM_PRIORITIES.items()
        )
        self.by_name = {each.name: each for each in (*system, *classes)}
        defaults = [each for each in self.by_name.values() if each.global_default]
        # Two defaults can come about in a race; the humbler one counts.
        self.default = min(defaults, key=lambda each: (each.value, each.name), default=None)


def check_priority_class(priority_class: PriorityClass) -> None:
    """Complain about a class that an API server would forbid."""
    name, value = priority_class.name, priority_class.value
    if not name.startswith("system-"):
        if value > HIGHEST_USER_PRIORITY:
            raise ManifestError(
                f"PriorityClass {name}, value: maximum allowed value of a user defined priority "
                f"is {HIGHEST_USER_PRIORITY}, is {value}"
            )
        return
    if name not in SYSTEM_PRIORITIES:
        fault = f"{name} is not a known system priority class"
    elif value != SYSTEM_PRIORITIES[name]:
        fault = f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name]}"
    elif priority_class.global_default:
        fault = f"globalDefault of {name} PriorityClass must be false"
    else:
        return
    raise ManifestError(
        f"PriorityClass {name}, metadata.name: priority class names with 'system-' prefix are "
        f"reserved for system use only. error: {fault}"
    )


def priority(pod: Pod, classes: PriorityClasses) -> tuple[str, int, str]:
    """The pod's class name, priority and preemption policy.

    A pod that states a priority without a class keeps it. An API server would refuse it, but
    without one there is no shorter way to say what is meant.
    """
    spec = pod.spec
    if spec.priority_class_name:
        return _priority_by_name(pod, classes)
    default = classes.default
    if default is None or spec.priority is not None:
        return "", spec.priority or 0, spec.preemption_policy or PREEMPT_LOWER_PRIORITY
    return default.name, default.value, spec.preemption_policy or _policy(default)


def _priority_by_name(pod: Pod, classes: PriorityClasses) -> tuple[str, int, str]:
    spec, name = pod.spec, pod.spec.priority_class_name
    found = classes.by_name.get(name)
    if found is None:
        if spec.priority is not None:  # Admitted elsewhere, by a class that was not brought along.
            return name, spec.priority, spec.preemption_policy or PREEMPT_LOWER_PRIORITY
        raise ManifestError(
            f"Pod {pod.key}, spec.priorityClassName: no PriorityClass with name {name} was found"
        )
    policy = _policy(found)
    if spec.priority not in (None, found.value):
        raise _contradiction(pod, "integer value of priority", spec.priority, found.value)
    if spec.preemption_policy not in (None, policy):
        raise _contradiction(
            pod, "string value of PreemptionPolicy", spec.preemption_policy, policy
        )
    return name, found.value, policy


def _policy(priority_class: PriorityClass) -> str:
    return priority_class.preemption_policy or PREEMPT_LOWER_PRIORITY


def _contradiction(
    pod: Pod, what: str, given: int | str | None, computed: int | str
) -> ManifestError:
    return ManifestError(
        f"Pod {pod.key}, spec.priorityClassName: the {what} ({given}) must not be provided in pod "
        f"spec; priority admission controller computed {computed} from the given PriorityClass name"
    )


Amounts = tuple[str, int, Mapping[str, Quantity]]
"""A field path with a gap for an index, the index, and quantities by name."""


def bad_quantity(obj: KubeObject) -> tuple[str, str] | None:
    """The path of the first quantity that is none or cannot be meant, and what is wrong with it."""
    for path, index, amounts in _amounts(obj):
        for name, amount in amounts.items():
            try:
                nano = quantity.nano(amount)
            except ValueError as error:
                return join_path(path.format(index), name), str(error)
            step = quantity.MICRO if name == "cpu" else quantity.NANO
            if nano < 0:
                fault = f"must be greater than or equal to 0, is {str(amount)[:60]}"
            elif nano > quantity.INT64_MAX * step:  # Kubernetes would read it as 0.
                fault = f"must fit into 64 bits, is {str(amount)[:60]}"
            else:
                continue
            return join_path(path.format(index), name), fault
    return None


def join_path(path: str, name: str) -> str:
    """`requests.cpu`, but `requests[nvidia.com/gpu]`: as Kubernetes writes it."""
    if not path:
        return name
    return f"{path}.{name}" if re.fullmatch(r"[\w-]+", name) else f"{path}[{name}]"


def _amounts(obj: KubeObject) -> list[Amounts]:
    match obj:
        case Pod():
            return _pod_amounts(obj)
        case Node():
            return [
                ("status.allocatable", 0, obj.status.allocatable),
                ("status.capacity", 0, obj.status.capacity),
            ]
        case PersistentVolume():
            return [("spec.capacity", 0, obj.spec.capacity)]
        case PersistentVolumeClaim():
            return [
                ("spec.resources.requests", 0, obj.spec.resources.requests),
                ("status.capacity", 0, obj.status.capacity),
            ]
        case CSIStorageCapacity():
            sizes = {"capacity": obj.capacity, "maximumVolumeSize": obj.maximum_volume_size}
            return [("", 0, {name: size for name, size in sizes.items() if size is not None})]
        case NodePool():
            status = obj.spec.template.status
            return [
                ("spec.template.status.allocatable", 0, status.allocatable),
                ("spec.template.status.capacity", 0, status.capacity),
            ]
    return _template_amounts(obj)


def _template_amounts(obj: KubeObject) -> list[Amounts]:
    place, template = workloads.pod_template(obj) or ("", None)
    if template is None:
        return []
    amounts = _pod_amounts(Pod(spec=template.spec))
    return [(f"{place}.{path}", index, each) for path, index, each in amounts]


def _pod_amounts(pod: Pod) -> list[Amounts]:
    # Lists rather than generators: this runs for every container of every pod there is.
    spec, status = pod.spec, pod.status
    found: list[Amounts] = [("spec.overhead", 0, spec.overhead)]
    for i, container in enumerate(spec.containers):
        found += _both("spec.containers[{}].resources", i, container.resources)
    for i, container in enumerate(spec.init_containers):
        found += _both("spec.initContainers[{}].resources", i, container.resources)
    for i, volume in enumerate(spec.volumes):
        if volume.ephemeral and (template := volume.ephemeral.volume_claim_template):
            path = "spec.volumes[{}].ephemeral.volumeClaimTemplate.spec.resources.requests"
            found.append((path, i, template.spec.resources.requests))
    for i, each in enumerate(status.container_statuses):
        found += _both("status.containerStatuses[{}].resources", i, each.resources)
        found.append(
            ("status.containerStatuses[{}].allocatedResources", i, each.allocated_resources)
        )
    for i, each in enumerate(status.init_container_statuses):
        path = "status.initContainerStatuses[{}].allocatedResources"
        found += _both("status.initContainerStatuses[{}].resources", i, each.resources)
        found.append((path, i, each.allocated_resources))
    found += _both("spec.resources", 0, spec.resources)
    found += _both("status.resources", 0, status.resources)
    found.append(("status.allocatedResources", 0, status.allocated_resources))
    return found


def _both(path: str, index: int, resources: ResourceRequirements | None) -> tuple[Amounts, ...]:
    if resources is None:
        return ()
    return (
        (f"{path}.requests", index, resources.requests),
        (f"{path}.limits", index, resources.limits),
    )
