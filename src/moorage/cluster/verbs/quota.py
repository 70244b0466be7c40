"""Quota: refuse a new object that would exceed a ResourceQuota of its namespace."""

from collections.abc import Iterable

from moorage.cluster import status_errors
from moorage.cluster.resources import DEFINITIONS, RESOURCE_QUOTAS, Resource
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


def charged_quotas(store: Store, resource: Resource, obj: Object) -> list[Object]:
    """The quotas with a new object counted; raises ForbiddenError.

    The controller corrects them later: an object may be refused after all, or be deleted.
    """
    if not resource.namespaced or not store.count(RESOURCE_QUOTAS):
        return []
    found = []
    for each in store.each(RESOURCE_QUOTAS):
        if objects.namespace(each) != objects.namespace(obj):
            continue
        charged, why = resource_quota.charged(each, obj, store.each(DEFINITIONS))
        if why and store.find(resource, *key_of(obj)) is None:
            raise status_errors.forbidden(resource, obj["metadata"]["name"], why)
        if charged is not each:
            found.append(charged)
    return found
