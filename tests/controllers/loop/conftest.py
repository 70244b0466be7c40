"""A control plane on virtual time, without HTTP: all controllers, kubelets, the scheduler."""

import itertools
from random import Random

import pytest

from moorage.api import timestamps
from moorage.cluster.api_server import ApiServer
from moorage.cluster.resources import BUILT_IN, NODES, PODS
from moorage.cluster.status_errors import NotFoundError
from moorage.cluster.store import Store
from moorage.core.scheduler import Scheduler
from moorage.serve.control_plane import ControlPlane

NOON = 1_800_000_000.0
MAX_TURNS = 10_000


class World:
    """An API server with its control plane; time passes in `run` only."""

    def __init__(self) -> None:
        self.now = NOON
        uids = itertools.count(1)
        self.store = Store(
            clock=lambda: timestamps.to_text(self.now), uid=lambda: f"uid-{next(uids)}"
        )
        self.api = ApiServer(self.store, now=lambda: self.now, random=Random(1))
        self.begin()

    def begin(self) -> None:
        """Start controllers and scheduler on the objects of the store."""
        self.control_plane = ControlPlane(self.api, Scheduler(), stopwatch=lambda: 0.0)
        self.settle()

    def settle(self) -> None:
        """Run all tasks that are due now."""
        for _ in range(MAX_TURNS):
            if not self.control_plane.has_work:
                return
            self.control_plane.turn()
        raise AssertionError("the controllers do not settle")

    def run(self, seconds: float) -> None:
        """Advance the time, and run the tasks that become due."""
        end = self.now + seconds
        self.settle()
        while (at := self.control_plane.deadline) is not None and at <= end:
            self.now = max(self.now, at)
            self.control_plane.turn()
            self.settle()
        self.now = end

    # Objects

    def create(self, kind: str, name: str, namespace: str = "default", **fields):
        meta = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
        made = self.api.create(resource(kind), {"metadata": meta, **fields})
        self.settle()
        return made

    def nodes(self, count: int, **labels: str) -> None:
        for number in range(count):
            meta = {"name": f"n{number}", "labels": {"kubernetes.io/hostname": f"n{number}"}}
            meta["labels"] |= labels
            self.api.create(NODES, {"metadata": meta})
        self.settle()

    def get(self, kind: str, name: str, namespace: str = "default"):
        found = resource(kind)
        return self.store.get(found, namespace if found.namespaced else "", name)

    def exists(self, kind: str, name: str, namespace: str = "default") -> bool:
        try:
            self.get(kind, name, namespace)
        except NotFoundError:
            return False
        return True

    def all(self, kind: str):
        return list(self.store.each(resource(kind)))

    def change(self, kind: str, name: str, **fields) -> None:
        """Update fields of the spec."""
        obj = self.get(kind, name)
        self.api.update(resource(kind), {**obj, "spec": {**obj["spec"], **fields}})
        self.settle()

    def annotate(self, kind: str, name: str, **texts: str) -> None:
        obj = self.get(kind, name)
        annotations = {**obj["metadata"].get("annotations", {}), **texts}
        meta = {**obj["metadata"], "annotations": annotations}
        self.api.update(resource(kind), {**obj, "metadata": meta})
        self.settle()

    def delete(self, kind: str, name: str, options=None) -> None:
        found = resource(kind)
        self.api.delete(found, "default" if found.namespaced else "", name, options)
        self.settle()

    # Pods

    def pods(self, **labels: str):
        return [
            pod
            for pod in self.store.each(PODS)
            if labels.items() <= pod["metadata"].get("labels", {}).items()
        ]

    def running(self, **labels: str):
        return [
            p
            for p in self.pods(**labels)
            if p["status"]["phase"] == "Running" and "deletionTimestamp" not in p["metadata"]
        ]


def resource(kind: str):
    return next(each for each in BUILT_IN if each.kind == kind)


@pytest.fixture
def world():
    return World()
