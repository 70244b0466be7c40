"""The API without the wire: every verb, for the HTTP side and for controllers in this process.

    create, update, delete          as a client would, with checks and defaults
    put                             as a controller of ours would: spec and status at once
    bind, evict                     what pods have besides

Everything happens at once, in one thread. Whoever acknowledges a write to somebody outside
awaits `store.settled()` first.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from moorage.serve import status_errors
from moorage.serve.controllers.objects import Object
from moorage.serve.objects import validation
from moorage.serve.patches import apply
from moorage.serve.patches.apply import FieldManager
from moorage.serve.resources import (
    DEFINITIONS,
    DISRUPTION_BUDGETS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    Resource,
    ResourceRegistry,
)
from moorage.serve.status_errors import BadRequestError
from moorage.serve.store import DELETED, Change, Store, encode
from moorage.serve.verbs import binding, create, delete, eviction, update
from moorage.serve.verbs.binding import Binding
from moorage.serve.verbs.delete import DeleteOptions

Managed = list[dict[str, Any]] | None
_TRIES = 8  # of a generated name


class ApiServer:
    """An API server's verbs over a store."""

    def __init__(self, store: Store, *, now: Callable[[], float], random: Random) -> None:
        self.store = store
        self.now = now
        self.random = random
        self.registry = ResourceRegistry(store.each(DEFINITIONS))
        store.subscribe(self._observe_definition)
        self._found()

    def resource_of(self, obj: Object) -> Resource:
        """Where an object belongs, by its apiVersion and kind; raises BadRequestError."""
        found = self.registry.of(obj)
        if found is None:
            kind, version = obj.get("kind"), obj.get("apiVersion")
            raise BadRequestError(f'no matches for kind "{kind}" in version "{version}"')
        return found

    def create(
        self, resource: Resource, obj: Object, *, managed: Managed = None, dry_run: bool = False
    ) -> Object:
        """Let a new object in; `managed` are its `managedFields`, if it is being applied."""
        obj = own_copy({"apiVersion": resource.api_version, "kind": resource.kind, **obj})
        meta = obj.setdefault("metadata", {})
        if resource.namespaced:
            meta.setdefault("namespace", "default")
        prefix = "" if meta.get("name") else meta.get("generateName", "")
        if not isinstance(prefix, str):
            raise BadRequestError("metadata.generateName has to be a text", resource)
        for _ in range(_TRIES if prefix else 0):
            meta["name"] = validation.generate_name(prefix, self.random)
            if self.store.find(resource, meta.get("namespace", ""), meta["name"]) is None:
                break
        obj = create.prepare(self.store, self.random, resource, obj)
        if managed:
            obj["metadata"]["managedFields"] = managed
        if dry_run:
            self._check_free(resource, obj)
            return create.with_identity(self.store, obj)
        created = self.store.create(resource, obj)
        return (
            create.establish_definition(self.store, created) if resource is DEFINITIONS else created
        )

    def update(
        self,
        resource: Resource,
        obj: Object,
        *,
        subresource: str = "",
        manager: str = "",
        managed: Managed = None,
        dry_run: bool = False,
    ) -> Object:
        """Replace an object, or the part of it that the subresource stands for.

        Changed fields are booked on the manager, unless `managed` says whose they are.
        """
        meta = obj["metadata"]
        before = self.store.stored(resource, meta.get("namespace", ""), meta["name"])
        update.check_precondition(resource, before, obj)
        match subresource:
            case "status":
                new = update.update_status(resource, before.object, obj)
            case "finalize":
                new = update.update_finalizers(resource, before.object, obj)
            case "resize":
                new = update.update_resources(resource, before.object, obj)
            case _:
                new = update.update_object(resource, before.object, own_copy(obj))
        if managed is not None:
            new = {**new, "metadata": {**new["metadata"], "managedFields": managed}}
        elif "managedFields" in before.object["metadata"]:
            who = FieldManager(manager or "unknown", "Update", subresource)
            new = apply.record_update(before.object, new, who, self.store.clock())
        return new if dry_run else self._write(resource, new)

    def replace(
        self, resource: Resource, obj: Object, *, expect_version: str | None = None
    ) -> Object:
        """Replace spec, status and metadata at once, unchecked: for controllers of ours.

        With `expect_version`, or a version in the object's metadata, it has to be the latest.
        """
        meta = obj["metadata"]
        before = self.store.stored(resource, meta.get("namespace", ""), meta["name"])
        update.check_precondition(resource, before, obj)
        if expect_version is not None:
            expected = {**obj, "metadata": {**meta, "resourceVersion": expect_version}}
            update.check_precondition(resource, before, expected)
        return self._write(resource, update.replace_object(before.object, obj))

    def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        options: DeleteOptions | None = None,
        *,
        dry_run: bool = False,
    ) -> tuple[Object, bool]:
        """Delete an object as its kind, finalizers and the options say; whether it is gone."""
        obj = self.store.get(resource, namespace, name)
        ending = delete.delete_object(resource, obj, options or DeleteOptions(), self.now())
        if dry_run:
            return ending.marked, ending.gone
        if ending.gone:
            if resource is DEFINITIONS:
                self._delete_defined(obj)
            return self.store.delete(resource, namespace, name), True
        return self.store.update(resource, ending.marked), False

    def bind(self, namespace: str, name: str, wanted: Binding, *, dry_run: bool = False) -> Object:
        """Put a pod on a node. The node is not looked at: API servers do not, either."""
        pod = self.store.get(PODS, namespace, name)
        new = binding.bound(pod, wanted, self.store.clock())
        return new if dry_run else self.store.update(PODS, new)

    def evict(
        self,
        namespace: str,
        name: str,
        options: DeleteOptions | None = None,
        *,
        dry_run: bool = False,
    ) -> None:
        """Delete a pod if its disruption budget can spare it; raises TooManyRequests."""
        pod = self.store.get(PODS, namespace, name)
        delete.delete_object(PODS, pod, options or DeleteOptions(), self.now())  # for its refusals
        verdict = eviction.judge(self.store, pod)
        if dry_run:
            return
        if verdict.budget is not None:
            self.store.update(DISRUPTION_BUDGETS, verdict.budget)
        if options is not None and (wanted := options.preconditions) is not None:
            # The version was seen to above, and our own mark is about to change it.
            wanted = replace(wanted, resource_version=None)
            options = replace(options, preconditions=wanted)
        if pod["spec"].get("nodeName"):
            self.store.update(PODS, eviction.leaving(pod, self.store.clock()))
        self.delete(PODS, namespace, name, options)

    def _observe_definition(self, change: Change) -> None:
        if change.resource is not DEFINITIONS:
            return
        if change.type == DELETED:
            self.registry.forget(change.object["metadata"]["name"])
        else:
            self.registry.define(change.object)

    def _write(self, resource: Resource, new: Object) -> Object:
        meta = new["metadata"]
        if update.is_finished(resource, new):
            return self.store.delete(resource, meta.get("namespace", ""), meta["name"])
        return self.store.update(resource, new)

    def _delete_defined(self, definition: Object) -> None:
        """What a definition defines goes with it, whatever its finalizers say."""
        for resource in self.registry.defined_by(definition)[:1]:  # All versions share a shelf.
            for each in list(self.store.each(resource)):
                meta = each["metadata"]
                self.store.delete(resource, meta.get("namespace", ""), meta["name"])

    def _check_free(self, resource: Resource, obj: Object) -> None:
        meta = obj["metadata"]
        if self.store.find(resource, meta.get("namespace", ""), meta["name"]) is not None:
            raise status_errors.already_exists(resource, meta["name"])

    def _found(self) -> None:
        for resource, objects in (
            (NAMESPACES, create.initial_namespaces()),
            (PRIORITY_CLASSES, create.initial_priority_classes()),
        ):
            for obj in objects:
                if self.store.find(resource, "", obj["metadata"]["name"]) is None:
                    self.create(resource, obj)


def own_copy(obj: Object) -> Object:
    """A copy to fill defaults into; the fields of a template may be shared with many others."""
    copy: Object = msgspec.json.decode(encode(obj))
    return copy
