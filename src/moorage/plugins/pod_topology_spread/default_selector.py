"""The selector for pods that state no constraints: what their services and controller select.

A pod that no service selects and no known controller manages has none, and is not spread.
"""

from moorage import plugin as mp

Selector = mp.selectors.Selector
Requirement = mp.selectors.Requirement
Controller = mp.ReplicationController | mp.ReplicaSet | mp.StatefulSet

KINDS: dict[tuple[str, str], type[Controller]] = {
    ("v1", "ReplicationController"): mp.ReplicationController,
    ("apps/v1", "ReplicaSet"): mp.ReplicaSet,
    ("apps/v1", "StatefulSet"): mp.StatefulSet,
}


class DefaultSelector:
    """The default selector of one template's pods, made anew when what it is made of changes."""

    def __init__(self, pod: mp.Pod) -> None:
        owner = pod.controller
        self._pod = pod
        self._kind = None if owner is None else KINDS.get((owner.api_version, owner.kind))
        self._owner_key = "" if owner is None else f"{pod.namespace}/{owner.name}"
        # What `current` was made of.
        self._cluster: mp.Cluster | None = None
        self._services = -1
        self._controller: Controller | None = None
        self.current = mp.selectors.EVERYTHING

    def stamp(self, cluster: mp.Cluster) -> tuple[int, int]:
        """What stays the same for as long as services and controllers do."""
        kind = self._kind
        controllers = 0 if kind is None else cluster.version_of(kind)
        return cluster.version_of(mp.Service), controllers

    def refresh(self, cluster: mp.Cluster) -> bool:
        """Look at services and controller again; says whether the selector may be another."""
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
    """All that services and controller select by; empty if that is nothing."""
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


def _requirements(controller: mp.ReplicaSet | mp.StatefulSet) -> tuple[Requirement, ...]:
    try:
        return mp.selectors.compile_label_selector(controller.spec.selector).requirements
    except mp.selectors.SelectorError:
        return ()  # A controller that selects nothing sensible has nothing to say.
