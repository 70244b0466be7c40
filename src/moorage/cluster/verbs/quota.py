"""Quota: refuse an object, or an update, that would exceed a ResourceQuota of its namespace."""

from collections.abc import Iterable

from moorage.cluster import status_errors
from moorage.cluster.resources import (
    DEFINITIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_QUOTAS,
    SERVICES,
    Resource,
)
from moorage.cluster.store import Store, key_of
from moorage.controllers import objects, resource_quota
from moorage.controllers.objects import Object


def counted(store: Store, resources: Iterable[Resource], quota: Object) -> Object:
    """A new quota with what its namespace uses, so that it applies at once."""
    namespace = objects.namespace(quota)
    found = {  # By UID, because versions of a custom resource share their objects.
        objects.uid(obj): obj
        for resource in resources
        if resource.namespaced
        for obj in store.each(resource)
        if objects.namespace(obj) == namespace
    }
    return resource_quota.counted(quota, found.values(), store.each(DEFINITIONS))


# Kinds whose updates are charged, by subresource: claims grow, services get ports.
_UPDATES = {"": (PERSISTENT_VOLUME_CLAIMS, SERVICES), "resize": (PODS,)}


def charged_by_update(
    store: Store, resource: Resource, subresource: str, before: Object, new: Object
) -> list[Object]:
    """The quotas with what an update adds; raises ForbiddenError."""
    if resource not in _UPDATES.get(subresource, ()):
        return []
    return charged_quotas(store, resource, new, before)


def charged_quotas(
    store: Store, resource: Resource, obj: Object, before: Object | None = None
) -> list[Object]:
    """The quotas with an object counted, or an update of `before`; raises ForbiddenError.

    The controller corrects them later: an object may be refused after all, or be deleted.
    """
    if not resource.namespaced or not store.count(RESOURCE_QUOTAS):
        return []
    found = []
    for each in store.each(RESOURCE_QUOTAS):
        if objects.namespace(each) != objects.namespace(obj):
            continue
        charged, why = resource_quota.charged(each, obj, store.each(DEFINITIONS), before)
        # A new object of an existing name is refused for its name.
        if why and (before is not None or store.find(resource, *key_of(obj)) is None):
            raise status_errors.forbidden(resource, obj["metadata"]["name"], why)
        if charged is not each:
            found.append(charged)
    return found
