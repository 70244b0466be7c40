"""The objects of every namespace: its default ServiceAccount, and the authority of the cluster."""

from collections.abc import Iterator

from moorage.controllers import objects
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.writes import Create, Write

ROOT_AUTHORITY = "kube-root-ca.crt"


def reconcile(namespace: Object, index: ObjectIndex, _now: float) -> Iterator[Write]:
    """Create what is missing in a namespace."""
    if objects.is_terminating(namespace):
        return
    name = objects.name(namespace)
    accounts = {"apiVersion": "v1", "kind": "ServiceAccount"}
    maps = {"apiVersion": "v1", "kind": "ConfigMap"}
    if index.get("ServiceAccount", name, "default") is None:
        yield Create({**accounts, "metadata": {"name": "default", "namespace": name}})
    if index.get("ConfigMap", name, ROOT_AUTHORITY) is None:
        # No pod reads the certificate here; kubectl and charts expect the object.
        meta = {"name": ROOT_AUTHORITY, "namespace": name}
        yield Create({**maps, "metadata": meta, "data": {"ca.crt": ""}})
