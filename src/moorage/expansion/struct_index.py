"""StructIndex: the index of controllers over a cluster that keeps structs.

A simulation keeps pods, nodes and volumes as structs, for speed; controllers read plain dicts. So a
struct becomes a dict, its *view*, when a controller reads it, and the view is kept until the struct
changes. There may be a million pods: their views share what the pods share. Workloads and budgets
are kept as dicts, their *documents*.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod, PodSpec
from moorage.api.selectors import Selector
from moorage.controllers import node_lifecycle, objects
from moorage.controllers.index import STRUCTS, Key, ObjectIndex, StructReader
from moorage.controllers.objects import Object

DOCUMENT_KINDS = (
    "ReplicationController",
    "apps/ControllerRevision",
    "apps/DaemonSet",
    "apps/Deployment",
    "apps/ReplicaSet",
    "apps/StatefulSet",
    "batch/CronJob",
    "batch/Job",
    "policy/PodDisruptionBudget",
)
MOST_SHARED = 4096
# Kubelets of simulated nodes do not stop, so their leases do not expire.
LEASE: Object = {"metadata": {}, "spec": {"renewTime": "9999-01-01T00:00:00Z"}}


class StructIndex(ObjectIndex):
    """See the module. The host passes every change of a pod to `put_pod` and `drop_pod`."""

    def __init__(self, cluster: StructReader) -> None:
        super().__init__()
        self.reads = 0  # how many objects controllers have read: the cost of their decisions
        self._cluster = cluster
        self._pods: dict[str, Pod] = {}
        self._by_owner: dict[str, dict[str, None]] = {}
        self._without_owner: dict[str, dict[str, None]] = {}
        self._by_node: dict[str, dict[str, None]] = {}
        self._views: dict[str, tuple[KubeObject, Object]] = {}
        # Specs without node, and other parts of pods, as plain data. By the identity of the
        # containers, or of the part, which is kept, so that it stays the same one.
        self._specs: dict[int, tuple[PodSpec, Object]] = {}
        self._parts: dict[int, tuple[object, Any]] = {}
        # When a taint with the effect NoExecute was first read, by node, key and effect.
        self._tainted_at: dict[tuple[str, str, str], str] = {}

    # Pods

    def put_pod(self, pod: Pod) -> Pod | None:
        """Add or replace a pod; returns the pod before."""
        uid = pod.metadata.uid
        old = self._pods.get(uid)
        self._pods[uid] = pod
        if old is None or old.metadata.owner_references != pod.metadata.owner_references:
            if old is not None:
                self._forget_owner(old)
            owner = pod.controller
            if owner is None:
                self._without_owner.setdefault(pod.namespace, {})[uid] = None
            else:
                self._by_owner.setdefault(owner.uid, {})[uid] = None
        node = pod.spec.node_name
        if node and (old is None or not old.spec.node_name):
            self._by_node.setdefault(node, {})[uid] = None
        return old

    def drop_pod(self, pod: Pod) -> None:
        """Remove a pod."""
        uid = pod.metadata.uid
        known = self._pods.pop(uid, None)
        if known is not None:
            self._forget_owner(known)
            self._by_node.get(known.spec.node_name, {}).pop(uid, None)
        self._views.pop(uid, None)

    def _forget_owner(self, pod: Pod) -> None:
        owner = pod.controller
        members = self._by_owner if owner is not None else self._without_owner
        key = pod.namespace if owner is None else owner.uid
        found = members.get(key, {})
        found.pop(pod.uid, None)
        if not found:
            members.pop(key, None)

    def pod(self, uid: str) -> Pod | None:
        """The pod of that UID."""
        return self._pods.get(uid)

    def owned_pods(self, uid: str) -> list[Pod]:
        """The pods whose controller has this UID."""
        return [self._pods[each] for each in self._by_owner.get(uid, ())]

    # Views

    def view(self, obj: KubeObject) -> Object:
        """The struct as a dict."""
        known = self._views.get(obj.metadata.uid)
        if known is not None and known[0] is obj:
            return known[1]
        view = self._pod_view(obj) if isinstance(obj, Pod) else _view(obj)
        if isinstance(obj, Node) and obj.spec.taints:
            view = self._with_times(view)
        self._views[obj.metadata.uid] = (obj, view)
        return view

    def _pod_view(self, pod: Pod) -> Object:
        meta, status = pod.metadata, pod.status
        own = replace(meta, labels={}, annotations={}, owner_references=())
        view: Object = {"apiVersion": pod.api_version, "kind": pod.kind}
        shown = view["metadata"] = msgspec.to_builtins(own)
        if meta.labels:
            shown["labels"] = meta.labels
        if meta.annotations:
            shown["annotations"] = meta.annotations
        if meta.owner_references:
            shown["ownerReferences"] = self._shared(meta.owner_references)
        view["spec"] = self._spec_view(pod.spec)
        view["status"] = msgspec.to_builtins(replace(status, conditions=()))
        if status.conditions:
            conditions = tuple([self._shared(each) for each in status.conditions])
            view["status"]["conditions"] = conditions
        return view

    def _spec_view(self, spec: PodSpec) -> Object:
        """A spec as plain data: the same object for pods that differ only in their node."""
        unassigned, key = replace(spec, node_name=""), id(spec.containers)
        known = self._specs.get(key)
        if known is None or known[0] != unassigned:
            if len(self._specs) >= MOST_SHARED:
                self._specs.clear()
            known = self._specs[key] = (unassigned, msgspec.to_builtins(unassigned))
        return {**known[1], "nodeName": spec.node_name} if spec.node_name else known[1]

    def _shared(self, part: object) -> Any:
        """A part as plain data: the same object for pods that share the part."""
        known = self._parts.get(id(part))
        if known is None:
            if len(self._parts) >= MOST_SHARED:
                self._parts.clear()
            known = self._parts[id(part)] = (part, msgspec.to_builtins(part))
        return known[1]

    def _with_times(self, node: Object) -> Object:
        """The node with `timeAdded` in its taints; structs do not have it."""
        name = objects.name(node)
        taints = []
        for taint in objects.spec(node).get("taints") or ():
            at = self._tainted_at.get((name, taint.get("key", ""), taint.get("effect", "")))
            taints.append({**taint, "timeAdded": at} if at else taint)
        return objects.with_spec(node, taints=taints)

    def note_taints(self, node: Node, at: str) -> None:
        """Remember since when a node has its NoExecute taints."""
        present = {
            (node.name, each.key, each.effect)
            for each in node.spec.taints
            if each.effect == "NoExecute"
        }
        for key in [key for key in self._tainted_at if key[0] == node.name and key not in present]:
            del self._tainted_at[key]
        for key in present:
            self._tainted_at.setdefault(key, at)

    # The interface of ObjectIndex

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        if kind in DOCUMENT_KINDS:
            return super().get(kind, namespace, name)
        if kind == node_lifecycle.LEASE:
            return LEASE
        struct = STRUCTS.get(kind)
        if struct is None:
            return None
        found = self._cluster.get(struct, f"{namespace}/{name}" if namespace else name)
        return None if found is None else self.view(found)

    def document_key(self, uid: str) -> Key | None:
        """The key of the document with this UID."""
        return self._uids.get(uid)

    def by_uid(self, uid: str) -> Object | None:
        pod = self._pods.get(uid)
        return super().by_uid(uid) if pod is None else self.view(pod)

    def all(self, kind: str, namespace: str = "") -> list[Object]:
        if kind in DOCUMENT_KINDS:
            return super().all(kind, namespace)
        struct = STRUCTS.get(kind)
        if struct is None:
            return []
        every: Iterable[KubeObject] = self._cluster.all(struct)
        return self._read(each for each in every if not namespace or each.namespace == namespace)

    def selected_pods(self, namespace: str, selector: Selector) -> list[Object]:
        found = (pod for pod in self._pods.values() if pod.namespace == namespace)
        return self._read(pod for pod in found if selector.matches(pod.metadata.labels))

    def count(self, kind: str) -> int:
        return super().count(kind) if kind in DOCUMENT_KINDS else len(self.all(kind))

    def dependents(self, uid: str) -> list[Object]:
        return [*super().dependents(uid), *self._read(self.owned_pods(uid))]

    def controlled(self, kind: str, uid: str) -> list[Object]:
        if kind != "Pod":
            return super().controlled(kind, uid)
        return self._read(self.owned_pods(uid))

    def orphans(self, kind: str, namespace: str, selector: Selector) -> list[Object]:
        if kind != "Pod":
            return super().orphans(kind, namespace, selector)
        found = (self._pods[uid] for uid in self._without_owner.get(namespace, ()))
        return self._read(pod for pod in found if selector.matches(pod.metadata.labels))

    def pods_on(self, node: str) -> list[Object]:
        return self._read(self._pods[uid] for uid in self._by_node.get(node, ()))

    def _read(self, found: Iterable[KubeObject]) -> list[Object]:
        views = [self.view(each) for each in found]
        self.reads += len(views)
        return views


def _view(obj: KubeObject) -> Object:
    view: Object = msgspec.to_builtins(obj)
    return {**view, "apiVersion": obj.api_version, "kind": obj.kind}
