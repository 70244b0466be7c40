"""The annotation of client-side apply, which a server-side apply by kubectl takes over.

After `kubectl apply`, `kubectl apply --server-side` is another field manager. What the former
applied and no client changed since is no conflict, and the annotation gets the new configuration.
"""

from typing import Any

import msgspec

from moorage.controllers import objects
from moorage.controllers.objects import Object

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER = "kubectl"


def configuration(live: Object, manager: str) -> Object | None:
    """What was last applied by the client; None unless kubectl applies the same version now."""
    text = objects.annotations(live).get(ANNOTATION)
    if not text or manager != MANAGER:
        return None
    try:
        found: Any = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    same = isinstance(found, dict) and found.get("apiVersion") == live.get("apiVersion")
    return found if same else None


def with_configuration(obj: Object, applied: Object, manager: str) -> Object:
    """The object whose annotation, if it has one, is what kubectl applies now."""
    if manager != MANAGER or not objects.annotations(obj).get(ANNOTATION):
        return obj
    stated = {k: v for k, v in objects.annotations(applied).items() if k != ANNOTATION}
    text = msgspec.json.encode(objects.with_metadata(applied, annotations=stated), order="sorted")
    return objects.with_annotations(obj, **{ANNOTATION: text.decode() + "\n"})
