"""The API without HTTP: every verb, for the REST handlers and for clients in this process.

    create, update, delete          as for an external client, with validation and defaults
    replace                         for the built-in controllers: spec and status at once
    bind, evict                     the subresources of pods

Calls complete at once, in one thread. A caller that acknowledges a write to an external client
first awaits `store.wait_until_durable()`.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
from msgspec import structs

from moorage.cluster import status_errors
from moorage.cluster.objects import custom_schemas, validation
from moorage.cluster.objects.rule_checks import RuleChecks
from moorage.cluster.patches import apply
from moorage.cluster.patches.apply import FieldManager
from moorage.cluster.patches.list_rules import BUILT_IN_KINDS, MergeRules, SchemaRules
from moorage.cluster.resources import (
    DEFINITIONS,
    DISRUPTION_BUDGETS,
    PODS,
    RESOURCE_QUOTAS,
    Resource,
    ResourceRegistry,
    is_established,
)
from moorage.cluster.status_errors import BadRequestError
from moorage.cluster.store import DELETED, Change, Store, encode, key_of
from moorage.cluster.verbs import binding, create, delete, eviction, quota, update
from moorage.cluster.verbs.binding import Binding
from moorage.cluster.verbs.delete import DeleteOptions
from moorage.controllers import objects
from moorage.controllers.objects import Object

Managed = list[dict[str, Any]] | None
_NAME_ATTEMPTS = 8


class ApiServer:
    """The verbs of an API server on a store."""

    def __init__(self, store: Store, *, now: Callable[[], float], random: Random) -> None:
        self.store = store
        self.now = now
        self.random = random
        self.registry = ResourceRegistry(store.each(DEFINITIONS))
        self.rules = RuleChecks()
        store.subscribe(self._observe_definition)
        for resource, obj in create.initial_objects():
            if store.find(resource, "", obj["metadata"]["name"]) is None:
                self.create(resource, obj)

    def resource_of(self, obj: Object) -> Resource:
        """The resource of an object, by its apiVersion and kind; raises BadRequestError."""
        found = self.registry.of(obj)
        if found is None:
            kind, version = obj.get("kind"), obj.get("apiVersion")
            raise BadRequestError(f'no matches for kind "{kind}" in version "{version}"')
        return found

    def merge_rules(self, resource: Resource) -> MergeRules:
        """How server-side apply merges objects of this resource."""
        if not resource.custom:
            return BUILT_IN_KINDS
        found = self.store.find(DEFINITIONS, "", f"{resource.plural}.{resource.group}") or {}
        for version in objects.spec(found).get("versions") or ():
            if version.get("name") == resource.version:
                schema = objects.value_at(version, "schema", "openAPIV3Schema")
                return SchemaRules(schema or {})
        return SchemaRules({})

    def create(
        self,
        resource: Resource,
        obj: Object,
        *,
        manager: str = "",
        managed: Managed = None,
        dry_run: bool = False,
    ) -> Object:
        """Create an object.

        The manager owns its fields; `managed` are its `managedFields` if it is applied.
        """
        obj = deep_copy({"apiVersion": resource.api_version, "kind": resource.kind, **obj})
        meta = obj.setdefault("metadata", {})
        if resource.namespaced:
            meta.setdefault("namespace", "default")
        obj = self._completed(resource, self.with_name(resource, obj))
        obj = create.prepare(self.store, self.random, resource, obj)
        quotas = quota.charged_quotas(self.store, resource, obj)
        if managed:
            obj["metadata"]["managedFields"] = managed
        elif manager:
            owner = FieldManager(manager, "Update")
            obj = apply.record_creation(obj, owner, self.store.clock(), self.merge_rules(resource))
        obj = create.protected(resource, obj)
        if dry_run:
            if self.store.find(resource, *key_of(obj)) is not None:
                raise status_errors.already_exists(resource, obj["metadata"]["name"])
            return self.store.with_identity(obj)
        new = self.store.create(resource, obj)
        for each in quotas:
            self.store.update(RESOURCE_QUOTAS, each)
        if resource is RESOURCE_QUOTAS:
            counted = quota.counted(self.store, self.registry, new)
            return self.store.update(RESOURCE_QUOTAS, counted)
        return create.establish_definition(self.store, new) if resource is DEFINITIONS else new

    def with_name(self, resource: Resource, obj: Object) -> Object:
        """A new object with its name, which may be generated."""
        meta = obj["metadata"]
        prefix = "" if meta.get("name") else meta.get("generateName", "")
        if not isinstance(prefix, str):
            raise BadRequestError("metadata.generateName has to be a text", resource)
        for _ in range(_NAME_ATTEMPTS if prefix else 0):
            obj = {
                **obj,
                "metadata": {**meta, "name": validation.generate_name(prefix, self.random)},
            }
            if self.store.find(resource, *key_of(obj)) is None:
                break
        return obj

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
        """Replace an object, or the part of it that the subresource covers.

        The manager becomes the owner of changed fields, unless `managed` is given.
        """
        before = self.store.stored(resource, *key_of(obj))
        update.check_precondition(resource, before, obj)
        resets = obj["metadata"].get("managedFields") == [{}]
        match subresource:
            case "status" | "approval":
                new = update.update_status(resource, before.object, obj)
                if resource.custom:
                    new = self._completed(resource, new, before.object)
            case "finalize":
                new = update.update_finalizers(resource, before.object, obj)
            case "resize":
                new = update.update_resources(before.object, obj)
            case _:
                obj = self._completed(resource, deep_copy(obj), before.object)
                new = update.update_object(resource, before.object, obj)
        quotas = quota.charged_by_update(self.store, resource, subresource, before.object, new)
        if managed is not None:
            new = {**new, "metadata": {**new["metadata"], "managedFields": managed}}
        elif resets and not subresource:
            meta = {k: v for k, v in new["metadata"].items() if k != "managedFields"}
            new = {**new, "metadata": meta}
        elif manager or "managedFields" in before.object["metadata"]:
            owner = FieldManager(manager or "unknown", "Update", subresource)
            rules = self.merge_rules(resource)
            new = apply.record_update(before.object, new, owner, self.store.clock(), rules)
        if dry_run:
            return new
        written = self._write(resource, new)
        for each in quotas:
            self.store.update(RESOURCE_QUOTAS, each)
        return written

    def _completed(self, resource: Resource, obj: Object, before: Object | None = None) -> Object:
        """A custom resource with the defaults of its schema; raises InvalidError."""
        schema = resource.schema
        if schema is None:
            return obj
        obj, _ = custom_schemas.prune(obj, schema)
        obj = custom_schemas.fill_defaults(obj, schema)
        if causes := self.rules.causes(resource, obj, before):
            raise validation.invalid_object(resource, str(obj["metadata"].get("name", "")), causes)
        return obj

    def replace(
        self, resource: Resource, obj: Object, *, expect_version: str | None = None
    ) -> Object:
        """Replace spec, status and metadata without validation, for the built-in controllers.

        `expect_version`, or a version in the object's metadata, has to be the latest one.
        """
        before = self.store.stored(resource, *key_of(obj))
        update.check_precondition(resource, before, obj)
        if expect_version is not None:
            meta = {**obj["metadata"], "resourceVersion": expect_version}
            update.check_precondition(resource, before, {**obj, "metadata": meta})
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
        """Delete an object by its kind, finalizers and options; returns whether it is removed."""
        obj = self.store.get(resource, namespace, name)
        marked, gone = delete.delete_object(resource, obj, options or DeleteOptions(), self.now())
        if dry_run:
            return marked, gone
        if not gone:
            return self.store.update(resource, marked), False
        return self._remove(resource, namespace, name), True

    def bind(self, namespace: str, name: str, target: Binding, *, dry_run: bool = False) -> Object:
        """Bind a pod to a node. As in an API server, the node need not exist."""
        pod = self.store.get(PODS, namespace, name)
        new = binding.bound_pod(pod, target, self.store.clock())
        return new if dry_run else self.store.update(PODS, new)

    def evict(
        self,
        namespace: str,
        name: str,
        options: DeleteOptions | None = None,
        *,
        dry_run: bool = False,
    ) -> None:
        """Delete a pod if its disruption budget allows it; raises TooManyRequestsError."""
        pod = self.store.get(PODS, namespace, name)
        # Raises what the deletion below would raise, before the budget is charged.
        delete.delete_object(PODS, pod, options or DeleteOptions(), self.now())
        budgets = self.store.each(DISRUPTION_BUDGETS)
        budget = eviction.charged_budget(budgets, pod, self.store.clock())
        if dry_run:
            return
        if budget is not None:
            self.store.update(DISRUPTION_BUDGETS, budget)
        if options is not None and (expected := options.preconditions) is not None:
            # The version was checked above, and the condition set below changes it.
            expected = structs.replace(expected, resource_version=None)
            options = structs.replace(options, preconditions=expected)
        if pod["spec"].get("nodeName"):
            self.store.update(PODS, eviction.with_disruption_target(pod, self.store.clock()))
        self.delete(PODS, namespace, name, options)

    def _observe_definition(self, change: Change) -> None:
        if change.resource is not DEFINITIONS:
            return
        self.rules.forget()
        if change.type == DELETED:
            self.registry.forget(change.object["metadata"]["name"])
        else:
            self.registry.define(change.object)

    def _write(self, resource: Resource, new: Object) -> Object:
        if update.is_finished(resource, new):
            gone = self._remove(resource, *key_of(new))
            version = {"resourceVersion": gone["metadata"]["resourceVersion"]}
            return {**new, "metadata": {**new["metadata"], **version}}
        return self.store.update(resource, new)

    def _remove(self, resource: Resource, namespace: str, name: str) -> Object:
        if resource is not DEFINITIONS:
            return self.store.delete(resource, namespace, name)
        definition = self.store.get(DEFINITIONS, namespace, name)
        # Its objects go with it, without regard to their finalizers; versions share a storage.
        for served in self.registry.defined_by(definition)[:1]:
            for each in list(self.store.each(served)):
                self.store.delete(served, *key_of(each))
        gone = self.store.delete(DEFINITIONS, namespace, name)
        for each in list(self.store.each(DEFINITIONS)):  # Its names are free for them.
            if each["spec"]["group"] == gone["spec"]["group"] and not is_established(each):
                create.establish_definition(self.store, each)
        return gone


def deep_copy(obj: Object) -> Object:
    """A copy to fill defaults into; parts of a template may be shared with other objects."""
    copy: Object = msgspec.json.decode(encode(obj))
    return copy
