"""Pods from a dump share their equal parts, and are otherwise as they were read."""

import msgspec

from moorage.api import manifests
from moorage.api.pod import Pod

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"namespace": "a", "labels": {"app": "web"}},
    "spec": {
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "containers": [{"name": "c", "image": "web", "resources": {"requests": {"cpu": "1"}}}],
    },
    "status": {"phase": "Running", "containerStatuses": [{"name": "c"}]},
}


def document(name, **spec):
    metadata = {**POD["metadata"], "name": name, "uid": name}
    return {**POD, "metadata": metadata, "spec": {**POD["spec"], **spec}}


def test_equal_parts_are_one_object(tmp_path):
    documents = [
        document("one", nodeName="n1"),
        document("two", nodeName="n2"),
        document("other", containers=[{"name": "c", "image": "web"}]),
    ]
    path = tmp_path / "pods.json"
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": documents}))
    one, two, other = manifests.load([path]).objects
    assert one.spec.containers is two.spec.containers
    assert one.spec.tolerations is two.spec.tolerations
    assert one.metadata.labels is two.metadata.labels is other.metadata.labels
    assert one.status.container_statuses is two.status.container_statuses
    assert other.spec.containers != one.spec.containers
    assert [one, two, other] == msgspec.convert(documents, list[Pod])
