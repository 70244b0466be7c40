"""What is there before anybody asks: namespaces, the system's priority classes."""

from collections.abc import Iterator

from moorage.api.admission import SYSTEM_PRIORITIES
from moorage.serve.controllers.objects import Object
from moorage.serve.resources import DEFINITIONS
from moorage.serve.store import Store
from moorage.serve.verbs import conditions

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_DESCRIPTIONS = {
    "system-node-critical": (
        "Used for system critical pods that must not be moved from their current node."
    ),
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, "
        "but can be moved to another node if necessary."
    ),
}


def namespaces() -> Iterator[Object]:
    """The namespaces of every cluster."""
    for name in _NAMESPACES:
        yield {"metadata": {"name": name}}


def priority_classes() -> Iterator[Object]:
    """The priority classes of every cluster."""
    for name, value in SYSTEM_PRIORITIES.items():
        yield {"metadata": {"name": name}, "value": value, "description": _DESCRIPTIONS[name]}


def established(store: Store, definition: Object) -> Object:
    """A definition with the conditions that clients wait for: its kind is served at once."""
    at = store.clock()
    found: list[Object] = []
    for type_, reason in (
        ("NamesAccepted", "NoConflicts"),
        ("Established", "InitialNamesAccepted"),
    ):
        condition = {"type": type_, "status": "True", "reason": reason, "message": ""}
        found = conditions.with_condition(found, condition, at)
    names = definition["spec"]["names"]
    versions = [each["name"] for each in definition["spec"]["versions"] if each.get("storage")]
    status = {"conditions": found, "acceptedNames": names, "storedVersions": versions}
    return store.update(DEFINITIONS, {**definition, "status": status})


def as_if_born(store: Store, obj: Object) -> Object:
    """The object that a dry run answers with."""
    born = {"uid": store.uid(), "creationTimestamp": store.clock()}
    return {**obj, "metadata": {**obj["metadata"], **born}}
