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
    one, two, other = load(tmp_path, *documents)
    assert one.spec.containers is two.spec.containers
    assert one.spec.tolerations is two.spec.tolerations
    assert one.metadata.labels is two.metadata.labels is other.metadata.labels
    assert one.status.container_statuses is two.status.container_statuses
    assert other.spec.containers != one.spec.containers
    assert [one, two, other] == msgspec.convert(documents, list[Pod])


def load(tmp_path, *documents):
    path = tmp_path / "pods.json"
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": documents}))
    return manifests.load([path]).objects


def test_empty_parts_of_different_types_are_not_confused(tmp_path):
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "a"}}
    volumes = {**bare, "metadata": {"name": "b", "uid": "b"}, "spec": {"volumes": [{"name": "v"}]}}
    one, two = load(tmp_path, bare, volumes)
    assert [one, two] == msgspec.convert([bare, volumes], list[Pod])
    assert type(one.spec) is type(two.spec) is not type(one.status)


def test_conditions_are_shared_one_by_one(tmp_path):
    def conditions(ready_at):
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "a"}
        return [scheduled, {"type": "Ready", "status": "True", "lastTransitionTime": ready_at}]

    documents = [
        {**document(name), "status": {"phase": "Running", "conditions": conditions(ready_at)}}
        for name, ready_at in (("one", "b"), ("two", "c"))
    ]
    one, two = load(tmp_path, *documents)
    assert one.status.conditions[0] is two.status.conditions[0]
    assert one.status.conditions[1].type is two.status.conditions[1].type
    assert [one, two] == msgspec.convert(documents, list[Pod])


def test_volumes_are_shared_unless_one_has_a_generated_name(tmp_path):
    files = {"name": "files", "configMap": {"name": "files"}}
    token = {"name": "kube-api-access-x2x4z", "projected": {}}
    documents = [
        *(document(name, volumes=[files]) for name in ("one", "two")),
        *(document(name, volumes=[files, token]) for name in ("three", "four")),
    ]
    one, two, three, four = load(tmp_path, *documents)
    assert one.spec.volumes is two.spec.volumes
    assert three.spec.containers is four.spec.containers
    assert [one, two, three, four] == msgspec.convert(documents, list[Pod])


def test_pods_of_two_workloads_in_turn(tmp_path):
    other = [{"name": "c", "image": "other"}]
    documents = [document("a"), document("b", containers=other), document("c"), document("d")]
    documents[3]["metadata"]["labels"] = {"app": "db"}
    documents[3] |= {"status": {"phase": "Running"}}
    found = load(tmp_path, *documents)
    assert found == msgspec.convert(documents, list[Pod])
    assert found[0].spec.containers is found[2].spec.containers is found[3].spec.containers
    assert found[0].metadata.labels is found[1].metadata.labels is found[2].metadata.labels
