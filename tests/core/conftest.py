"""A scheduler with tiny plugins; the tests complete its effects."""

import pytest
from msgspec.structs import replace

from moorage.api import config
from moorage.api.server_requests import BindPod, EmitEvent, PatchPodStatus
from moorage.core.effects import Done, Failed, Unknown
from moorage.core.journal import Fact
from moorage.core.observations import Added, Deleted, Updated
from moorage.core.scheduler import Scheduler
from moorage.framework.registry import Registry
from moorage.testing import make_node


def settings(*names, profiles=None, **others):
    """A configuration with these plugins besides PrioritySort and DefaultBinder."""
    enabled = [{"name": name} for name in ("PrioritySort", *names, "DefaultBinder")]
    multi_point = {"disabled": [{"name": "*"}], "enabled": enabled}
    return {
        "apiVersion": config.API_VERSION,
        "kind": config.KIND,
        "profiles": profiles or [{"plugins": {"multiPoint": multi_point}}],
        **others,
    }


class Machine:
    """A scheduler turned by hand; every verb returns the requests that it caused."""

    def __init__(self, *plugins, nodes=("n1", "n2", "n3"), profiles=None, seed=0, **others):
        confirm_seconds = others.pop("confirm_seconds", 30.0)
        extenders = others.pop("extenders", ())
        names = [plugin.name for plugin in plugins]
        self.scheduler = Scheduler(
            config.load(settings(*names, profiles=profiles, **others)),
            registry=Registry({plugin.name: plugin for plugin in plugins}),
            seed=seed,
            confirm_seconds=confirm_seconds,
            extenders=extenders,
        )
        self.now = 0.0
        self.effects = []
        self.add(*(make_node(node) if isinstance(node, str) else node for node in nodes))

    # The verbs

    def add(self, *objects):
        return self._collect(*(self.scheduler.observe(Added(obj), self.now) for obj in objects))

    def update(self, obj):
        return self._collect(self.scheduler.observe(Updated(obj), self.now))

    def delete(self, obj):
        return self._collect(self.scheduler.observe(Deleted(obj), self.now))

    def schedule(self, *pods):
        """Add pods and try each of them once."""
        requests = self.add(*pods)
        for _ in pods:
            requests += self._collect(self.scheduler.schedule_one(self.now))
        return requests

    def schedule_one(self):
        return self._collect(self.scheduler.schedule_one(self.now))

    def advance(self, seconds=0.0):
        self.now += seconds
        return self._collect(self.scheduler.advance(self.now))

    def answer(self, kind, outcome=None):
        """Answer the oldest unanswered request of a kind."""
        effect = next(effect for effect in self.effects if isinstance(effect.request, kind))
        self.effects.remove(effect)
        outcome = Done() if outcome is None else outcome
        return self._collect(self.scheduler.complete(effect.ticket, outcome, self.now))

    def _collect(self, *caused):
        effects = [effect for effects in caused for effect in effects]
        self.effects += effects
        self.scheduler.check_invariants()
        return [effect.request for effect in effects]

    # Shorthands

    def fail(self, kind=BindPod, reason="no"):
        return self.answer(kind, Failed(reason))

    def lose(self, kind=BindPod, reason="connection reset"):
        return self.answer(kind, Unknown(reason))

    def confirm(self, pod, node):
        """A pod is observed on a node."""
        return self.update(on(pod, node))

    def where(self, pod):
        return self.scheduler.queue.where(pod.uid)

    def entry(self, pod):
        return next(
            entry
            for entries in self.scheduler.queue.dump().values()
            for entry in entries
            if entry.uid == pod.uid
        )

    def cached(self, pod):
        """The node that a pod is on, with a question mark if that is assumed."""
        cached = self.scheduler.cache.get(pod.uid)
        return None if cached is None else cached.node + "?" * cached.assumed

    def requested(self, node, resource="cpu"):
        table = self.scheduler.cluster.table
        return int(table.requested(resource)[table.row_of[node]])

    def facts(self, pod, *kinds: type[Fact]):
        story = self.scheduler.journal.story(pod.uid)
        return [fact for fact in story if isinstance(fact, kinds or Fact)]

    def story(self, pod):
        return [type(fact).__name__ for fact in self.scheduler.journal.story(pod.uid)]


def on(pod, node):
    return replace(pod, spec=replace(pod.spec, node_name=node))


def kinds(requests):
    return [type(request).__name__ for request in requests]


def notes(requests):
    return [request.note for request in requests if isinstance(request, EmitEvent)]


def conditions(requests):
    return [
        (request.condition.reason, request.condition.message)
        for request in requests
        if isinstance(request, PatchPodStatus) and request.condition is not None
    ]


@pytest.fixture
def machine():
    return Machine
