"""Quotas: the ResourceQuotas of a cluster of structs, and what is used of each.

`moorage.controllers.resource_quota` has the rules, which `serve` applies as well. Here the usage is
kept up to date from changes: a namespace may have many thousands of pods.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from moorage.api import defaults
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod, PodSpec
from moorage.api.policy import ResourceQuota
from moorage.controllers import objects, resource_quota
from moorage.controllers.objects import Object
from moorage.controllers.resource_quota import Usage
from moorage.expansion.documents import has_document


@dataclass(slots=True)
class QuotaUsage:
    """A quota as a document, its limits, and what is used of them."""

    document: Object
    hard: Usage
    used: Usage


class Charge(NamedTuple):
    """What an object adds to a quota, and why it is refused whatever is used."""

    quota: QuotaUsage
    added: Usage
    why: str


Charges = tuple[Charge, ...]


class Quotas:
    """See the module.

    Objects are structs, or the documents of workloads. `in_namespace` returns all objects of a
    namespace; `on_room` is called with a namespace in which less is used than before.
    """

    def __init__(
        self,
        in_namespace: Callable[[str], Iterable[KubeObject | Object]],
        on_room: Callable[[str], None],
    ) -> None:
        self._in_namespace = in_namespace
        self._on_room = on_room
        self._by_namespace: dict[str, dict[str, QuotaUsage]] = {}
        # What each object is counted with, by UID; pods also with the containers that it follows
        # from, and whether they ended.
        self._counted: dict[str, tuple[Charges, object]] = {}
        # By the identity of a pod's spec, which is kept, so that it stays the same one.
        self._specs: dict[int, tuple[PodSpec, Charges]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_namespace)

    # Quotas

    def put(self, quota: ResourceQuota) -> None:
        """Add or replace a quota."""
        known = self._by_namespace.get(quota.namespace or "default", {}).get(quota.name)
        document = _view(quota)
        if known is not None and known.document.get("spec") == document.get("spec"):
            return
        hard = resource_quota.amounts(quota.spec.get("hard"))
        found = self._by_namespace.setdefault(quota.namespace or "default", {})
        found[quota.name] = QuotaUsage(document, hard, dict.fromkeys(hard, 0))
        self._recount(quota.namespace or "default")

    def drop(self, quota: ResourceQuota) -> None:
        """Remove a quota."""
        found = self._by_namespace.get(quota.namespace, {})
        if found.pop(quota.name, None) is not None:
            self._recount(quota.namespace)
        if not found:
            self._by_namespace.pop(quota.namespace, None)

    def _recount(self, namespace: str) -> None:
        self._specs.clear()
        for each in self._by_namespace[namespace].values():
            each.used = dict.fromkeys(each.hard, 0)
        for obj in self._in_namespace(namespace):
            self._counted.pop(_uid(obj), None)
            self.observe(obj)
        self._on_room(namespace)

    def with_status(self, obj: KubeObject) -> KubeObject:
        """The object; a quota with the current usage in its status."""
        if not isinstance(obj, ResourceQuota):
            return obj
        known = self._by_namespace.get(obj.namespace, {}).get(obj.name)
        if known is None:
            return obj
        return replace(obj, status=resource_quota.with_usage(known.document, known.used)["status"])

    # Objects

    def refusal(self, obj: KubeObject | Object) -> str:
        """Why a new object is refused; empty if it is not. Objects from a server exist already."""
        if not self._by_namespace:
            return ""
        if isinstance(obj, Pod):
            if obj.namespace not in self._by_namespace or defaults.from_server(obj.metadata):
                return ""
            charges = self._pod_charges(obj)
        else:
            if not isinstance(obj, dict) and has_document(obj):
                return ""  # Its document is checked.
            document = obj if isinstance(obj, dict) else _view(obj)
            meta = document["metadata"]
            if meta.get("resourceVersion") and meta.get("creationTimestamp"):
                return ""
            charges = self._charges(document)
        for quota, added, why in charges:
            why = why or resource_quota.exceeded(quota.document, added, quota.used, quota.hard)
            if why:
                return why
        return ""

    def update_refusal(self, old: KubeObject, new: KubeObject) -> str:
        """Why an update is refused: what it adds exceeds a quota."""
        before, document = _view(old), _view(new)
        for quota in self._by_namespace.get(new.namespace, {}).values():
            if resource_quota.matches_scopes(quota.document, document):
                added = resource_quota.growth(document, before)
                added = resource_quota.limited(added, quota.hard)
                why = resource_quota.exceeded(quota.document, added, quota.used, quota.hard)
                if why:
                    return why
        return ""

    def observe(self, obj: KubeObject | Object) -> None:
        """An object was added or changed."""
        if isinstance(obj, Pod):
            if obj.namespace in self._by_namespace:
                self._observe_pod(obj)
            return
        if not isinstance(obj, dict) and has_document(obj):
            return  # Its document is counted.
        document = obj if isinstance(obj, dict) else _view(obj)
        if objects.namespace(document) in self._by_namespace:
            self._count(objects.uid(document), self._charges(document), None)

    def forget(self, obj: KubeObject | Object) -> None:
        """An object was removed."""
        self._count(_uid(obj), (), None)

    def _observe_pod(self, pod: Pod) -> None:
        # Binding changes the spec, but not what the quotas read of it.
        state = None if pod.is_terminal else pod.spec.containers
        known = self._counted.get(pod.uid)
        if known is None or known[1] is not state:
            charges = self._charges(_view(pod)) if pod.is_terminal else self._pod_charges(pod)
            self._count(pod.uid, charges, state)

    def _pod_charges(self, pod: Pod) -> Charges:
        """The charges of a pod that has not ended; pods of one template share them."""
        known = self._specs.get(id(pod.spec))
        if known is None:
            known = self._specs[id(pod.spec)] = (pod.spec, self._charges(_view(pod)))
        return known[1]

    def _charges(self, obj: Object) -> Charges:
        found = []
        for quota in self._by_namespace.get(objects.namespace(obj), {}).values():
            if resource_quota.matches_scopes(quota.document, obj):
                added = resource_quota.limited(resource_quota.usage(obj), quota.hard)
                why = resource_quota.unstated(quota.document, obj, quota.hard)
                if added or why:
                    found.append(Charge(quota, added, why))
        return tuple(found)

    def _count(self, uid: str, charges: Charges, state: object) -> None:
        """Count an object instead of how it was counted before; without charges, not at all."""
        before, _ = self._counted.pop(uid, ((), None))
        if charges:
            self._counted[uid] = (charges, state)
        if before is charges:
            return
        for sign, each in ((-1, before), (1, charges)):
            for quota, added, _ in each:
                for name, amount in added.items():
                    quota.used[name] += sign * amount
        if before:
            self._on_room(objects.namespace(before[0].quota.document))


def _uid(obj: KubeObject | Object) -> str:
    return objects.uid(obj) if isinstance(obj, dict) else obj.metadata.uid


def _view(obj: KubeObject) -> Object:
    view: Object = msgspec.to_builtins(obj)
    return {**view, "apiVersion": obj.api_version, "kind": obj.kind}
