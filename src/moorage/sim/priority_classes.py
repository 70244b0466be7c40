"""What an API server forbids about priority classes: second defaults, other values, ends."""

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.api.admission import SYSTEM_PRIORITIES
from moorage.api.meta import KubeObject
from moorage.api.policy import PriorityClass
from moorage.sim.refusals import Denied, Forbidden

GROUP = "scheduling.k8s.io"


def is_class(obj: KubeObject | Mapping[str, Any]) -> bool:
    """Whether an object, or what is to become one, is a priority class."""
    kind = obj.get("kind") if isinstance(obj, Mapping) else type(obj).__name__
    return kind == "PriorityClass"


def check_default(new: KubeObject, known: Iterable[PriorityClass]) -> None:
    """Refuse a second default. That two of them can come about in a race is another matter."""
    if isinstance(new, PriorityClass) and new.global_default:
        for other in known:
            if other.global_default and other.name != new.name:
                raise Denied(
                    f'priorityclasses.{GROUP} "{new.name}" is forbidden: PriorityClass '
                    f"{other.name} is already marked as default. Only one default can exist"
                )


def check_update(old: PriorityClass, new: PriorityClass) -> None:
    """Refuse what nobody may change on an existing class."""
    problem = f'PriorityClass.{GROUP} "{new.name}" is invalid: '
    if new.value != old.value:
        raise Forbidden(f"{problem}value: Forbidden: may not be changed in an update.")
    if new.preemption_policy not in (None, old.preemption_policy):
        raise Forbidden(f"{problem}preemptionPolicy: Invalid value: field is immutable")


def check_delete(name: str) -> None:
    """Refuse to delete a class of the system."""
    if name in SYSTEM_PRIORITIES:
        raise Denied(
            f'priorityclasses.{GROUP} "{name}" is forbidden: '
            "this is a system priority class and cannot be deleted"
        )
