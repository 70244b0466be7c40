"""PodDisruptionBudget: how many pods may be evicted now.

A percentage, or `maxUnavailable`, is a share of what the pods' controllers ask for; a plain
`minAvailable` of what is there. Evictions that were granted count until their pod is seen leaving,
or for two minutes.
"""

from collections.abc import Iterator, Sequence

from moorage.serve import timestamps
from moorage.serve.controllers import objects, ownership, pods
from moorage.serve.controllers.index import ObjectIndex
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.writes import RequeueAt, UpdateObject, Write

KIND = "policy/PodDisruptionBudget"
EVICTION_SECONDS = 120.0
SCALED = ("apps/ReplicaSet", "apps/StatefulSet", "apps/Deployment", "ReplicationController")


def reconcile(budget: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    """Gather the pods that the budget covers, and decide."""
    selector = objects.selector(budget)
    everybody = view.all("Pod", objects.namespace(budget))
    covered = [pod for pod in everybody if selector.matches(objects.labels(pod))]
    yield from decide(budget, covered, expected(covered, view), now)


def expected(covered: Sequence[Object], view: ObjectIndex) -> int:
    """How many pods the controllers of these pods ask for, and those without one."""
    wanted: dict[str, int] = {}
    alone = 0
    for pod in covered:
        top = _top(pod, view)
        if top is None:
            alone += 1
        else:
            replicas = objects.spec(top).get("replicas")
            wanted[objects.uid(top)] = 1 if replicas is None else int(replicas)
    return alone + sum(wanted.values())


def _top(pod: Object, view: ObjectIndex) -> Object | None:
    """The scalable object that a pod's number comes from."""
    found = None
    owner = view.by_uid(ownership.controller_uid(pod))
    while owner is not None and objects.kind_of(owner) in SCALED:
        found, owner = owner, view.by_uid(ownership.controller_uid(owner))
    return found


def decide(
    budget: Object, covered: Sequence[Object], expected_pods: int, now: float
) -> Iterator[Write]:
    """The status: how many are healthy, how many have to be, how many may go."""
    spec = objects.spec(budget)
    at_least = spec.get("minAvailable")
    if isinstance(at_least, int):
        desired, total = at_least, len(covered)
    elif at_least is not None:
        desired, total = objects.scaled(at_least, expected_pods, round_up=True), expected_pods
    else:
        missing = objects.scaled(spec.get("maxUnavailable"), expected_pods, round_up=True)
        desired, total = max(0, expected_pods - missing), expected_pods
    granted = _granted(budget, covered, now)
    healthy = sum(
        pods.is_ready(pod) and pods.is_active(pod) and objects.name(pod) not in granted
        for pod in covered
    )
    allowed = max(0, healthy - desired) if total > 0 else 0
    changed = objects.with_status(
        budget,
        currentHealthy=healthy,
        desiredHealthy=desired,
        expectedPods=total,
        disruptionsAllowed=allowed,
        disruptedPods=granted or None,
        observedGeneration=budget["metadata"].get("generation", 0),
    )
    enough = allowed > 0
    changed = objects.with_condition(
        changed,
        timestamps.to_text(now),
        type="DisruptionAllowed",
        status="True" if enough else "False",
        reason="SufficientPods" if enough else "InsufficientPods",
        message="",
        observedGeneration=budget["metadata"].get("generation", 0),
    )
    if changed != budget:
        yield UpdateObject(changed)
    if granted:
        yield RequeueAt(
            min(timestamps.to_seconds(at) for at in granted.values()) + EVICTION_SECONDS
        )


def _granted(budget: Object, covered: Sequence[Object], now: float) -> dict[str, str]:
    """Evictions that were granted and whose pods are not seen leaving yet."""
    there = {objects.name(pod) for pod in covered if not objects.is_terminating(pod)}
    noted: dict[str, str] = objects.status(budget).get("disruptedPods") or {}
    return {
        name: at
        for name, at in noted.items()
        if name in there and timestamps.to_seconds(at, now) + EVICTION_SECONDS > now
    }
