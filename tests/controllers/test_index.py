"""ObjectIndex: members and their order after changes."""

from moorage.api.pod import Pod
from moorage.controllers.index import ObjectIndex

OWNER = {"uid": "set-uid", "controller": True}


def pod(name, *, node="", owners=(), phase="Pending"):
    meta = {"name": name, "namespace": "default", "uid": f"{name}-uid"}
    meta |= {"ownerReferences": list(owners)} if owners else {}
    spec = {"nodeName": node} if node else {}
    kind = {"apiVersion": "v1", "kind": "Pod"}
    return {**kind, "metadata": meta, "spec": spec, "status": {"phase": phase}}


def names(found):
    return [each["metadata"]["name"] for each in found]


def test_the_latest_change_is_last():
    index = ObjectIndex()
    for name in ("a", "b"):
        index.put(pod(name))
    changed = pod("a", phase="Running")
    assert index.put(changed) == pod("a")
    assert names(index.all("Pod")) == names(index.pods_on("")) == ["b", "a"]
    assert index.get("Pod", "default", "a") is changed


def test_a_struct_is_that_of_the_latest_change():
    index = ObjectIndex()
    for phase in ("Pending", "Running"):
        index.put(changed := pod("a", phase=phase))
        assert index.struct(Pod, changed).status.phase == phase


def test_a_changed_node_or_owner_moves_an_object():
    index = ObjectIndex()
    index.put(pod("a", node="n", owners=[OWNER, {"uid": "other"}]))
    assert names(index.controlled("Pod", "set-uid")) == names(index.dependents("other")) == ["a"]
    index.put(pod("a", node="m"))
    assert not index.pods_on("n")
    assert not index.controlled("Pod", "set-uid")
    assert not index.dependents("other")
    assert names(index.pods_on("m")) == ["a"]


def test_an_object_that_was_created_again_has_its_new_uid():
    index = ObjectIndex()
    index.put(pod("a"))
    new = pod("a")
    new["metadata"]["uid"] = "new"
    index.put(new)
    assert index.by_uid("a-uid") is None
    assert index.by_uid("new") is new
    assert index.drop(new) is new
    assert not index.all("Pod")


def test_objects_of_a_namespace():
    index = ObjectIndex()
    for name, namespace in (("a", "x"), ("b", "y"), ("c", "x")):
        obj = pod(name)
        obj["metadata"]["namespace"] = namespace
        index.put(obj)
    assert names(index.all("Pod", "x")) == ["a", "c"]
    index.put(index.get("Pod", "x", "a") | {"status": {"phase": "Running"}})
    assert names(index.all("Pod", "x")) == ["c", "a"]
    index.drop(index.get("Pod", "x", "c"))
    assert names(index.all("Pod", "x")) == ["a"]
    assert names(index.all("Pod")) == ["b", "a"]
    assert index.all("Pod", "z") == []
