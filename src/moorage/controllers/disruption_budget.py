"""PodDisruptionBudget: how many pods may be evicted now.

A percentage, or `maxUnavailable`, is a share of the replicas of the pods' controllers; an integer
`minAvailable` is a number of existing pods. A granted eviction counts until its pod is being
deleted, or for two minutes.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from moorage.api import timestamps
from moorage.controllers import objects, pods, writes
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.writes import RequeueAt, Write

KIND = "policy/PodDisruptionBudget"
EVICTION_SECONDS = 120.0
SCALED = ("apps/ReplicaSet", "apps/StatefulSet", "apps/Deployment", "ReplicationController")


class BudgetFigures(NamedTuple):
    """How many pods are healthy, have to be healthy, and are expected."""

    healthy: int
    desired: int
    expected: int

    @property
    def allowed(self) -> int:
        """How many pods may be evicted now."""
        return max(0, self.healthy - self.desired) if self.expected > 0 else 0


def figures(
    min_available: int | str | None,
    max_unavailable: int | str | None,
    *,
    healthy: int,
    covered: int,
    expected: Callable[[], int],
) -> BudgetFigures:
    """The figures of a budget that covers so many pods; without a limit it allows nothing."""
    if max_unavailable is not None:
        total = expected()
        missing = objects.int_or_percent(max_unavailable, total, round_up=True)
        return BudgetFigures(healthy, max(0, total - missing), total)
    if isinstance(min_available, int):
        return BudgetFigures(healthy, min_available, covered)
    if min_available is not None:
        total = expected()
        desired = objects.int_or_percent(min_available, total, round_up=True)
        return BudgetFigures(healthy, desired, total)
    return BudgetFigures(healthy, 0, 0)


def reconcile(budget: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Set the status: how many pods are healthy, have to be, and may be evicted."""
    selector, spec = objects.selector(budget), objects.spec(budget)
    covered = index.selected_pods(objects.namespace(budget), selector)
    granted = _granted_evictions(budget, covered, now)
    healthy = sum(
        pods.is_ready(pod) and pods.is_active(pod) and objects.name(pod) not in granted
        for pod in covered
    )
    found = figures(
        spec.get("minAvailable"),
        spec.get("maxUnavailable"),
        healthy=healthy,
        covered=len(covered),
        expected=lambda: expected_pods(covered, index),
    )
    allowed = found.allowed
    changed = objects.with_status(
        budget,
        currentHealthy=found.healthy,
        desiredHealthy=found.desired,
        expectedPods=found.expected,
        disruptionsAllowed=allowed,
        disruptedPods=granted or None,
        observedGeneration=objects.generation(budget),
    )
    changed = objects.with_condition(
        changed,
        timestamps.to_text(now),
        type="DisruptionAllowed",
        status="True" if allowed else "False",
        reason="SufficientPods" if allowed else "InsufficientPods",
        message="",
        observedGeneration=objects.generation(budget),
    )
    yield from writes.update_if_changed(budget, changed)
    if granted:
        first = min(timestamps.to_seconds(at) for at in granted.values())
        yield RequeueAt(first + EVICTION_SECONDS)


def expected_pods(covered: Sequence[Object], index: ObjectIndex) -> int:
    """The replicas of the pods' controllers, plus the pods without one."""
    replicas: dict[str, int] = {}
    without_controller = 0
    for pod in covered:
        top = _top_controller(pod, index)
        if top is None:
            without_controller += 1
        else:
            replicas[objects.uid(top)] = objects.replicas(top)
    return without_controller + sum(replicas.values())


def _top_controller(pod: Object, index: ObjectIndex) -> Object | None:
    """The topmost scalable owner of a pod."""
    found = None
    owner = index.by_uid(objects.controller_uid(pod))
    while owner is not None and objects.kind_of(owner) in SCALED:
        found, owner = owner, index.by_uid(objects.controller_uid(owner))
    return found


def _granted_evictions(budget: Object, covered: Sequence[Object], now: float) -> dict[str, str]:
    """Granted evictions whose pods are not being deleted yet."""
    existing = {objects.name(pod) for pod in covered if not objects.is_terminating(pod)}
    disrupted: dict[str, str] = objects.status(budget).get("disruptedPods") or {}
    return {
        name: at
        for name, at in disrupted.items()
        if name in existing and timestamps.to_seconds(at, now) + EVICTION_SECONDS > now
    }
