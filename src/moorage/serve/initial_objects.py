"""The objects that a server starts with: default nodes, and objects from files.

Objects may come from a repository or from a dump of another cluster. The UIDs of a dump are not
valid here: owner references are rewritten to the new UIDs. References to owners that are not in
the input are dropped; otherwise the garbage collector would delete the object.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from moorage.errors import ManifestError
from moorage.serve import status_errors
from moorage.serve.api_server import ApiServer
from moorage.serve.controllers.objects import Object
from moorage.serve.resources import NAMESPACES, NODES
from moorage.serve.status_errors import StatusError

# What others refer to comes first.
FIRST = ("CustomResourceDefinition", "Namespace", "PriorityClass", "StorageClass", "Node")
# Made by kubelets and the API itself, and of no use without the cluster that they are about.
LEFT_OUT = ("Event", "Lease")
ZONES = 3
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"

SourceObject = tuple[str, Object]


def default_nodes(count: int) -> Iterator[Object]:
    """Nodes that look like those of a small cluster, in three zones."""
    for number in range(1, count + 1):
        name = f"node-{number}"
        labels = {HOSTNAME: name, ZONE: f"zone-{'abc'[(number - 1) % ZONES]}"}
        yield {"metadata": {"name": name, "labels": labels}}


def add_nodes(api: ApiServer, count: int) -> None:
    """Create so many nodes; those that a data folder brought along stay as they are."""
    for node in default_nodes(count):
        if api.store.find(NODES, "", node["metadata"]["name"]) is None:
            api.create(NODES, node)


def add_objects(api: ApiServer, found: Iterable[SourceObject]) -> int:
    """Create the objects; says how many. Those that are there already are left as they are."""
    waiting = sorted(
        (each for each in found if each[1]["kind"] not in LEFT_OUT),
        key=lambda each: FIRST.index(each[1]["kind"]) if each[1]["kind"] in FIRST else len(FIRST),
    )
    coming = {_uid(obj) for _, obj in waiting} - {""}
    known: dict[str, str] = {}
    created = 0
    while waiting:
        later = []
        for origin, obj in waiting:
            if any(uid in coming and uid not in known for uid in _owners(obj)):
                later.append((origin, obj))
                continue
            created += _add_one(api, origin, obj, known)
        if len(later) == len(waiting):  # Owners that own each other: nobody comes first.
            coming = set()
        waiting = later
    return created


def _add_one(api: ApiServer, origin: str, obj: Object, known: dict[str, str]) -> int:
    meta: Any = obj.get("metadata")
    if not isinstance(meta, dict):
        raise ManifestError(f"{origin}, {obj['kind']}, metadata: is missing")
    try:
        resource = api.resource_of(obj)
        if resource.namespaced:
            _add_namespace(api, str(meta.get("namespace") or "default"))
        there = api.store.find(resource, _place(resource.namespaced, meta), meta.get("name", ""))
        new = there or api.create(resource, with_new_references(obj, known))
    except StatusError as refusal:
        raise ManifestError(f"{origin}: {refusal}") from None
    known[_uid(obj)] = new["metadata"]["uid"]
    return 0 if there else 1


def _place(namespaced: bool, meta: Object) -> str:  # noqa: FBT001
    return str(meta.get("namespace") or "default") if namespaced else ""


def _add_namespace(api: ApiServer, name: str) -> None:
    try:
        api.store.get(NAMESPACES, "", name)
    except status_errors.NotFoundError:
        api.create(NAMESPACES, {"metadata": {"name": name}})


def with_new_references(obj: Object, known: dict[str, str]) -> Object:
    """The object with references that mean something here."""
    meta = dict(obj["metadata"])
    owners = [
        {**owner, "uid": known[owner["uid"]]}
        for owner in meta.pop("ownerReferences", None) or ()
        if owner.get("uid") in known
    ]
    if owners:
        meta["ownerReferences"] = owners
    moved = {**obj, "metadata": meta}
    spec = moved.get("spec")
    if isinstance(spec, dict) and isinstance(spec.get("claimRef"), dict):
        claim = {k: v for k, v in spec["claimRef"].items() if k not in ("uid", "resourceVersion")}
        moved["spec"] = {**spec, "claimRef": claim}
    return moved


def _uid(obj: Object) -> str:
    meta = obj.get("metadata")
    return str(meta.get("uid") or "") if isinstance(meta, dict) else ""


def _owners(obj: Object) -> list[str]:
    meta = obj.get("metadata")
    owners = meta.get("ownerReferences") if isinstance(meta, dict) else None
    return [str(owner.get("uid") or "") for owner in owners or () if isinstance(owner, dict)]
