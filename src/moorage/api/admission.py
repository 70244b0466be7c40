"""Priority admission: priority and preemption policy of pods from their priority classes.

A scheduler reads only `spec.priority` and `spec.preemptionPolicy`; an API server sets them when a
pod is created.
"""

from collections.abc import Iterable

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod, PodSpec
from moorage.api.pod_groups import PodGroup
from moorage.api.policy import PriorityClass
from moorage.errors import ManifestError

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}


class PriorityClasses:
    """All priority classes by name, including the system's own, and the default class."""

    def __init__(self, classes: Iterable[PriorityClass] = ()) -> None:
        system = (
            PriorityClass(metadata=ObjectMeta(name=name), value=value)
            for name, value in SYSTEM_PRIORITIES.items()
        )
        self.by_name = {each.name: each for each in (*system, *classes)}
        defaults = [each for each in self.by_name.values() if each.global_default]
        # A race can create two defaults; the lowest priority counts.
        self.default = min(defaults, key=lambda each: (each.value, each.name), default=None)


def check_priority_class(priority_class: PriorityClass) -> None:
    """Raise ManifestError for a class that an API server would refuse."""
    name, value = priority_class.name, priority_class.value
    if not name.startswith("system-"):
        if value > HIGHEST_USER_PRIORITY:
            raise ManifestError(
                f"PriorityClass {name}, value: maximum allowed value of a user defined priority "
                f"is {HIGHEST_USER_PRIORITY}, is {value}"
            )
        return
    if name not in SYSTEM_PRIORITIES:
        problem = f"{name} is not a known system priority class"
    elif value != SYSTEM_PRIORITIES[name]:
        problem = f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name]}"
    elif priority_class.global_default:
        problem = f"globalDefault of {name} PriorityClass must be false"
    else:
        return
    raise ManifestError(
        f"PriorityClass {name}, metadata.name: priority class names with 'system-' prefix are "
        f"reserved for system use only. error: {problem}"
    )


def priority(pod: Pod, classes: PriorityClasses) -> tuple[str, int, str]:
    """The pod's class name, priority and preemption policy.

    A pod that states a priority without a class keeps it. An API server would refuse that, but in
    a simulation it is the shortest way to set a priority.
    """
    spec = pod.spec
    if spec.priority_class_name:
        return _priority_by_name(pod, classes)
    default = classes.default
    if default is None or spec.priority is not None:
        return "", spec.priority or 0, spec.preemption_policy or PREEMPT_LOWER_PRIORITY
    return default.name, default.value, spec.preemption_policy or _policy(default)


def group_priority(group: PodGroup, classes: PriorityClasses) -> tuple[str, int]:
    """The class name and priority of a pod group; the rules are those of pods."""
    spec = group.spec
    as_pod = Pod(
        metadata=group.metadata,
        spec=PodSpec(priority_class_name=spec.priority_class_name, priority=spec.priority),
    )
    try:
        name, value, _ = priority(as_pod, classes)
    except ManifestError as error:
        raise ManifestError(str(error).replace("Pod ", "PodGroup ", 1)) from None
    return name, value


def _priority_by_name(pod: Pod, classes: PriorityClasses) -> tuple[str, int, str]:
    spec, name = pod.spec, pod.spec.priority_class_name
    found = classes.by_name.get(name)
    if found is None:
        if spec.priority is not None:  # Admitted by a class that is not among the objects.
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
