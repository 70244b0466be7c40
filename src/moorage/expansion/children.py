"""Owners by kind, namespace and name, not by UID: a manifest has no UIDs."""

from moorage.api.meta import KubeObject

Key = tuple[str, str, str]


def owner_key(obj: KubeObject) -> Key | None:
    """The key of an object's owner; None for an orphan."""
    owner = obj.controller
    return None if owner is None else (owner.kind, obj.namespace or "default", owner.name)
