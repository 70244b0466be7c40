"""What people and controllers do to the cluster of a simulation, from a seed."""

import itertools
from contextlib import suppress

from moorage.cluster.resources import NODES, PODS, PRIORITY_CLASSES
from moorage.cluster.status_errors import StatusError

ZONES = ("east", "west")
PRIORITIES = {"low": 10, "high": 1000}
MOST_PODS = 30
TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}


class Workload:
    def __init__(self, api, random, node_count, claims=None):
        self._api = api
        self._claims = claims  # Volumes and devices, if there are any.
        self._random = random
        self._names = itertools.count(1)
        self.created = 0
        for name, value in PRIORITIES.items():
            api.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        for _ in range(node_count):
            self.add_node()

    def change(self):
        """Change something."""
        kinds = (
            (8, self.add_pod),
            (2, self.add_pods),
            (4, self.delete_pod),
            (1, self.recreate_pod),
            (1, self.relabel_pod),
            (1, self.open_gate),
            (1, self.add_node),
            (2, self.cordon),
            (1, self.remove_node),
            *(((1, self._claims.delete_claim),) if self._claims else ()),
        )
        weights, actions = zip(*kinds, strict=True)
        action = self._random.choices(actions, weights)[0]
        if self._api.store.count(PODS) > MOST_PODS and action in (self.add_pod, self.add_pods):
            action = self.delete_pod
        with suppress(StatusError):  # The object is gone, or exists already.
            action()

    def add_node(self):
        draw, name = self._random, f"node-{next(self._names)}"
        labels = {"zone": draw.choice(ZONES), "kubernetes.io/hostname": name}
        amounts = {"cpu": draw.choice(("1", "2", "4")), "memory": "8Gi", "pods": "6"}
        node = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": [TAINT]} if draw.random() < 0.2 else {},
            "status": {"allocatable": amounts, "capacity": amounts},
        }
        created = self._api.create(NODES, node)
        if self._claims:
            self._claims.add_to_node(created)

    def add_pod(self, name=""):
        draw = self._random
        port = [{"containerPort": 80, "hostPort": 80}] if draw.random() < 0.1 else []
        cpu = draw.choice(("100m", "500m", "1", "1500m", "3"))
        container = {"name": "main", "image": "web", "ports": port}
        container["resources"] = {"requests": {"cpu": cpu}}
        spec = {"containers": [container], "terminationGracePeriodSeconds": draw.choice((0, 1, 10))}
        additions = (
            (0.2, {"nodeSelector": {"zone": draw.choice(ZONES)}}),
            (0.2, {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}),
            (0.6, {"priorityClassName": draw.choice(list(PRIORITIES))}),
            (0.1, {"schedulingGates": [{"name": "wait"}]}),
        )
        for share, addition in additions:
            if draw.random() < share:
                spec |= addition
        if self._claims:
            self._claims.add_to_pod(spec)
        meta = {"name": name or f"pod-{next(self._names)}"}
        if draw.random() < 0.1:
            meta["labels"] = {"hesitate": "yes"}
        if draw.random() < 0.15:
            meta["annotations"] = {"moorage.dev/run-seconds": str(draw.choice((1, 5, 20)))}
        self._api.create(PODS, {"metadata": meta, "spec": spec})
        self.created += 1

    def add_pods(self):
        for _ in range(self._random.randint(2, 6)):
            self.add_pod()

    def delete_pod(self):
        if pod := self._any(PODS):
            self._api.delete(PODS, "default", pod["metadata"]["name"])

    def recreate_pod(self):
        """Another pod of the same name, at once."""
        if pod := self._any(PODS, lambda pod: not pod["spec"].get("nodeName")):
            name = pod["metadata"]["name"]
            self._api.delete(PODS, "default", name)
            self.add_pod(name)

    def relabel_pod(self):
        if pod := self._any(PODS):
            labels = {**pod["metadata"].get("labels", {}), "version": str(next(self._names))}
            self._api.update(PODS, {**pod, "metadata": {**pod["metadata"], "labels": labels}})

    def open_gate(self):
        for pod in list(self._api.store.each(PODS)):
            if pod["spec"].get("schedulingGates"):
                self._api.update(PODS, {**pod, "spec": {**pod["spec"], "schedulingGates": []}})
                return

    def cordon(self):
        if node := self._any(NODES):
            self._set_unschedulable(node, not node["spec"].get("unschedulable", False))

    def cordon_all(self, on):
        """Cordon or uncordon every node."""
        for _, stored in self._api.store.snapshot(NODES):
            self._set_unschedulable(stored.object, on)

    def _set_unschedulable(self, node, on):
        spec = {**node["spec"], "unschedulable": on}
        self._api.update(NODES, {**node, "spec": spec})

    def remove_node(self):
        if self._api.store.count(NODES) > 1 and (node := self._any(NODES)):
            self._api.delete(NODES, "", node["metadata"]["name"])

    def _any(self, resource, is_meant=lambda obj: True):
        found = [stored.object for _, stored in self._api.store.snapshot(resource)]
        found = [obj for obj in found if is_meant(obj)]
        return self._random.choice(found) if found else None
