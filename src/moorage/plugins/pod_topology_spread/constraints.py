"""Topology spread constraints, parsed for a pod.

A pod that states no constraints gets those of its profile, with a selector made of what its
services and its controller select. Without a service or a known controller it is not spread.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from moorage import plugin as mp

Selector = mp.selectors.Selector
Stated = mp.TopologySpreadConstraint

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
HONOR, IGNORE = "Honor", "Ignore"

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

# For pods that state no constraints, unless the profile has a list of its own.
SYSTEM_DEFAULTS = (
    Stated(topology_key=HOSTNAME, when_unsatisfiable=SOFT, max_skew=3),
    Stated(topology_key=ZONE, when_unsatisfiable=SOFT, max_skew=5),
)

Controller = mp.ReplicationController | mp.ReplicaSet | mp.StatefulSet

CONTROLLERS: dict[tuple[str, str], type[Controller]] = {
    ("v1", "ReplicationController"): mp.ReplicationController,
    ("apps/v1", "ReplicaSet"): mp.ReplicaSet,
    ("apps/v1", "StatefulSet"): mp.StatefulSet,
}


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """How many more matching pods a domain may have than the domain with the fewest."""

    topology_key: str
    max_skew: int
    min_domains: int
    selector: Selector
    namespace: str
    inclusion: mp.Inclusion
    # Whether the selector matches the pod itself.
    matches_itself: bool

    @property
    def clauses(self) -> tuple[mp.Clause, ...]:
        """The pods that it counts; none if the selector is empty, though that matches all."""
        selector = self.selector
        if selector.is_empty or selector.matches_nothing:
            return ()
        return (mp.Clause(frozenset((self.namespace,)), selector),)

    @property
    def honors_taints(self) -> bool:
        return self.inclusion.tolerations is not None


def parse(
    pod: mp.Pod,
    stated: Iterable[Stated],
    action: str,
    *,
    selector: Selector | None = None,
    require_all: bool = True,
) -> tuple[SpreadConstraint, ...]:
    """The constraints for an action, all with one selector if that is given.

    A node that lacks any of their topology keys counts for none of them, unless `require_all` is
    off. A selector that does not parse raises.
    """
    chosen = [each for each in stated if each.when_unsatisfiable == action]
    keys = [each.topology_key for each in chosen] if require_all else []
    return tuple(_constraint(pod, each, keys, selector) for each in chosen)


def _constraint(
    pod: mp.Pod, stated: Stated, keys: Iterable[str], selector: Selector | None
) -> SpreadConstraint:
    chosen = _own_selector(pod, stated) if selector is None else selector
    return SpreadConstraint(
        topology_key=stated.topology_key,
        max_skew=stated.max_skew,
        min_domains=1 if stated.min_domains is None else stated.min_domains,
        selector=chosen,
        namespace=pod.namespace,
        inclusion=mp.Inclusion.of(
            pod,
            keys,
            honor_affinity=(stated.node_affinity_policy or HONOR) == HONOR,
            honor_taints=(stated.node_taints_policy or IGNORE) == HONOR,
        ),
        matches_itself=chosen.matches(pod.labels),
    )


def _own_selector(pod: mp.Pod, stated: Stated) -> Selector:
    """The stated selector, and the pod's own values of the labels under `matchLabelKeys`."""
    selector = mp.selectors.compile_label_selector(stated.label_selector)
    labels = pod.labels
    return selector.also(
        [mp.selectors.equals(key, labels[key]) for key in stated.match_label_keys if key in labels]
    )


class DefaultSelector:
    """The default selector of a template's pods, computed again when its inputs change."""

    def __init__(self, pod: mp.Pod) -> None:
        owner = pod.controller
        self._pod = pod
        self._kind = None if owner is None else CONTROLLERS.get((owner.api_version, owner.kind))
        self._owner_key = "" if owner is None else f"{pod.namespace}/{owner.name}"
        # The inputs of `current`.
        self._cluster: mp.Cluster | None = None
        self._services = -1
        self._controller: Controller | None = None
        self.current = mp.selectors.EVERYTHING

    def stamp(self, cluster: mp.Cluster) -> tuple[int, int]:
        """A value that changes when services or controllers change."""
        kind = self._kind
        controllers = 0 if kind is None else cluster.version_of(kind)
        return cluster.version_of(mp.Service), controllers

    def refresh(self, cluster: mp.Cluster) -> bool:
        """Read services and controller again; returns whether the selector changed."""
        services = cluster.version_of(mp.Service)
        kind = self._kind
        controller = None if kind is None else cluster.get(kind, self._owner_key)
        if (
            services == self._services
            and controller is self._controller
            and cluster is self._cluster
        ):
            return False
        before = self.current
        self._cluster, self._services, self._controller = cluster, services, controller
        self.current = make(self._pod, cluster, controller)
        return self.current != before


def make(pod: mp.Pod, cluster: mp.Cluster, controller: Controller | None) -> Selector:
    """The selectors of services and controller, combined; empty if there are none."""
    equal: dict[str, str] = {}
    for service in cluster.in_namespace(mp.Service, pod.namespace):
        selected = service.spec.selector
        if selected is not None and all(pod.labels.get(k) == v for k, v in selected.items()):
            equal.update(selected)
    if isinstance(controller, mp.ReplicationController):
        equal.update(controller.spec.selector or {})
        controller = None
    services = mp.selectors.selector_from_map(equal)
    return services if controller is None else services.also(_requirements(controller))


def _requirements(
    controller: mp.ReplicaSet | mp.StatefulSet,
) -> tuple[mp.selectors.Requirement, ...]:
    try:
        return mp.selectors.compile_label_selector(controller.spec.selector).requirements
    except mp.selectors.SelectorError:
        return ()  # An invalid selector is left out.
