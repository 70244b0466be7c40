"""JSON patch, JSON merge patch, strategic merge patch and server-side apply."""

import copy
import time

import pytest

from moorage.cluster.patches import apply, json_patch, list_rules, strategic_merge
from moorage.cluster.patches.apply import FieldManager
from moorage.cluster.status_errors import (
    ConflictError,
    StatusError,
    TooLargeError,
    UnclassifiedError,
)

TARGET = {"a": {"b": [1, 2, {"c": "d"}]}, "e": "f", "g/h": 1}


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        pytest.param([{"op": "add", "path": "/x", "value": 1}], TARGET | {"x": 1}, id="add"),
        pytest.param(
            [{"op": "add", "path": "/a/b/1", "value": 9}],
            TARGET | {"a": {"b": [1, 9, 2, {"c": "d"}]}},
            id="add into a list",
        ),
        pytest.param(
            [{"op": "add", "path": "/a/b/-", "value": 9}],
            TARGET | {"a": {"b": [1, 2, {"c": "d"}, 9]}},
            id="add to a list's end",
        ),
        pytest.param(
            [{"op": "remove", "path": "/a/b/2/c"}],
            TARGET | {"a": {"b": [1, 2, {}]}},
            id="remove",
        ),
        pytest.param(
            [{"op": "replace", "path": "/g~1h", "value": 2}], TARGET | {"g/h": 2}, id="escapes"
        ),
        pytest.param(
            [{"op": "move", "from": "/a/b/0", "path": "/n"}],
            TARGET | {"a": {"b": [2, {"c": "d"}]}, "n": 1},
            id="move",
        ),
        pytest.param([{"op": "copy", "from": "/e", "path": "/n"}], TARGET | {"n": "f"}, id="copy"),
        pytest.param([{"op": "test", "path": "/e", "value": "f"}], TARGET, id="test that holds"),
        pytest.param([{"op": "test", "path": "/e", "value": "g"}], None, id="test that does not"),
        pytest.param([{"op": "test", "path": "/g~1h", "value": True}], None, id="1 is not true"),
        pytest.param([{"op": "replace", "path": "/none", "value": 1}], None, id="nothing there"),
        pytest.param([{"op": "add", "path": "/a/b/9", "value": 1}], None, id="beyond the end"),
        pytest.param([{"op": "add", "path": "/no/x", "value": 1}], None, id="no parent"),
        pytest.param([{"op": "move", "from": "/a", "path": "/a/b"}], None, id="into itself"),
        pytest.param([{"op": "odd", "path": "/a"}], None, id="unknown operation"),
        pytest.param([{"op": "add", "path": "/a"}], None, id="no value"),
        pytest.param({"op": "add"}, None, id="no list"),
    ],
)
def test_json_patch(operations, result):
    before = copy.deepcopy(TARGET)
    if result is None:
        with pytest.raises(StatusError):
            json_patch.apply_json_patch(TARGET, operations)
    else:
        assert json_patch.apply_json_patch(TARGET, operations) == result
    assert before == TARGET


def test_copies_of_copies_are_limited_by_their_size():
    doubling = [{"op": "copy", "from": "/a", "path": f"/a/y{i}"} for i in range(40)]
    with pytest.raises(TooLargeError, match="copies"):
        json_patch.apply_json_patch(TARGET, doubling)


def test_many_small_copies_are_allowed():
    many = [{"op": "copy", "from": "/e", "path": f"/n{i}"} for i in range(1000)]
    assert len(json_patch.apply_json_patch(TARGET, many)) == len(TARGET) + 1000


def test_shifts_of_long_lists_are_limited():
    long = {"list": list(range(500_000))}
    operations = [{"op": "remove", "path": "/list/0"}] * json_patch.MAX_OPERATIONS
    with pytest.raises(TooLargeError, match="shifts"):
        json_patch.apply_json_patch(long, operations)
    at_the_end = [{"op": "add", "path": "/list/-", "value": 1}] * json_patch.MAX_OPERATIONS
    assert len(json_patch.apply_json_patch(long, at_the_end)["list"]) == 510_000


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        pytest.param({"e": None}, {"a": TARGET["a"], "g/h": 1}, id="null removes"),
        pytest.param({"a": {"x": 1}}, TARGET | {"a": {"b": TARGET["a"]["b"], "x": 1}}, id="merge"),
        pytest.param({"a": {"b": [3]}}, TARGET | {"a": {"b": [3]}}, id="lists are replaced"),
        pytest.param({"e": {"x": None}}, TARGET | {"e": {}}, id="an object for a text"),
    ],
)
def test_merge_patch(patch, result):
    assert json_patch.apply_merge_patch(TARGET, patch) == result


def pod(*containers, **spec):
    return {"spec": {"containers": list(containers), **spec}}


A, B = {"name": "a", "image": "x"}, {"name": "b", "image": "y"}


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        pytest.param(pod(A, B), pod({"name": "b", "image": "z"}), pod(A, B | {"image": "z"}),
                     id="items merge by name"),
        pytest.param(pod(A), pod(B), pod(B, A), id="new items come first"),
        pytest.param(pod(A, B), pod({"name": "a", "$patch": "delete"}), pod(B), id="delete one"),
        pytest.param(pod(A, B), pod(B, {"$patch": "replace"}), pod(B), id="replace the list"),
        pytest.param(
            pod(A),
            {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                      "containers": [B]}},
            pod(B, A),
            id="the order",
        ),
        pytest.param(
            pod(A | {"ports": [{"containerPort": 80, "name": "w"}]}),
            pod({"name": "a", "ports": [{"containerPort": 80, "hostPort": 8080}]}),
            pod(A | {"ports": [{"containerPort": 80, "name": "w", "hostPort": 8080}]}),
            id="ports merge by number",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}},
            {"metadata": {"finalizers": ["c", "b"]}},
            id="sets",
        ),
        pytest.param(
            pod(tolerations=[{"key": "a"}]), pod(tolerations=[{"key": "b"}]),
            pod(tolerations=[{"key": "b"}]), id="lists without a key are replaced",
        ),
        pytest.param(
            {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}},
            {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
            {"spec": {"strategy": {"type": "Recreate"}}},
            id="retained keys",
        ),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}},
                     id="replace an object"),
        pytest.param(pod(A), pod({"image": "z"}), None, id="an item without its key"),
        pytest.param(pod(A), {"spec": {"$patch": "odd"}}, None, id="an unknown directive"),
    ],
)  # fmt: skip
def test_strategic_merge(target, patch, result):
    before = copy.deepcopy(target)
    if result is None:
        with pytest.raises(UnclassifiedError):
            strategic_merge.apply(target, patch)
    else:
        assert strategic_merge.apply(target, patch) == result
    assert before == target


ME, YOU = FieldManager("me", "Apply"), FieldManager("you", "Apply")


def deploy(replicas=None, image=None, labels=None):
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {}}
    if labels is not None:
        obj["metadata"]["labels"] = labels
    if replicas is not None:
        obj["spec"]["replicas"] = replicas
    if image is not None:
        obj["spec"]["template"] = pod({"name": "app", "image": image})
    return obj


def applied(live, wanted, manager=ME, *, force=False):
    return apply.apply(live, wanted, manager, at="now", force=force)


def test_what_is_no_longer_applied_goes():
    live = applied(None, deploy(replicas=2, labels={"a": "1", "b": "2"}))
    live = applied(live, deploy(labels={"a": "1"}))
    assert live["metadata"]["labels"] == {"a": "1"}
    assert "replicas" not in live.get("spec", {})


def test_what_others_applied_stays():
    live = applied(None, deploy(replicas=2))
    live = applied(live, deploy(labels={"a": "1"}), YOU)
    live = applied(live, deploy(replicas=3))
    assert (live["spec"]["replicas"], live["metadata"]["labels"]) == (3, {"a": "1"})


def test_changing_a_field_of_another_manager_is_a_conflict():
    live = applied(None, deploy(replicas=2, image="x"))
    with pytest.raises(ConflictError, match=r'conflict with "me": \.spec\.replicas') as refused:
        applied(live, deploy(replicas=3), YOU)
    assert refused.value.causes[0].reason == "FieldManagerConflict"
    live = applied(live, deploy(replicas=3), YOU, force=True)
    # Now it is yours: mine leaves it alone, and cannot change it.
    assert applied(live, deploy(image="x"))["spec"]["replicas"] == 3
    with pytest.raises(ConflictError):
        applied(live, deploy(replicas=4, image="x"))


def test_the_same_value_is_shared():
    live = applied(None, deploy(replicas=2))
    live = applied(live, deploy(replicas=2), YOU)
    live = applied(live, deploy())
    assert live["spec"]["replicas"] == 2
    live = applied(live, deploy(), YOU)
    assert "replicas" not in live.get("spec", {})


def test_list_items_have_field_owners():
    live = applied(None, deploy(image="x"))
    other = deploy()
    other["spec"]["template"] = pod({"name": "side", "image": "y"})
    live = applied(live, other, YOU)
    names = [each["name"] for each in live["spec"]["template"]["spec"]["containers"]]
    assert names == ["app", "side"]
    live = applied(live, deploy(replicas=1), YOU)
    names = [each["name"] for each in live["spec"]["template"]["spec"]["containers"]]
    assert names == ["app"]


def test_updates_are_recorded():
    live = applied(None, deploy(replicas=2))
    changed = {**live, "spec": {"replicas": 5}}
    live = apply.record_update(live, changed, FieldManager("scaler", "Update"), "later")
    with pytest.raises(ConflictError, match='conflict with "scaler"'):
        applied(live, deploy(replicas=2))
    plain = deploy(replicas=2)
    changed = apply.record_update(plain, deploy(replicas=3), FieldManager("scaler", "Update"), "x")
    with pytest.raises(ConflictError, match='conflict with "scaler" using apps/v1'):
        applied(changed, deploy(replicas=2))


def test_an_object_without_managed_fields_has_an_owner_before_the_first_apply():
    with pytest.raises(ConflictError, match='conflict with "before-first-apply"'):
        applied(deploy(replicas=2), deploy(replicas=3))


def test_applying_the_same_again_changes_nothing():
    live = applied(None, deploy(replicas=2, image="x"))
    again = apply.apply(live, deploy(replicas=2, image="x"), ME, at="later", force=False)
    assert again == live


SCHEMA = {
    "properties": {
        "spec": {
            "properties": {
                "ports": {
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {"properties": {"port": {}, "protocol": {"default": "TCP"}}},
                },
                "names": {"x-kubernetes-list-type": "set", "items": {}},
                "whole": {"x-kubernetes-map-type": "atomic"},
                "list": {"items": {}},
            }
        }
    }
}


def test_lists_of_custom_resources_merge_as_their_schema_says():
    def custom(**spec):
        return {"apiVersion": "a.b/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec}

    rules = list_rules.SchemaRules(SCHEMA)
    first = custom(ports=[{"port": 1, "name": "a"}], names=["a"], whole={"a": 1})
    live = apply.apply(None, first, ME, at="x", force=False, rules=rules)
    second = custom(ports=[{"port": 2, "protocol": "UDP"}], names=["b"], list=[1])
    merged = apply.apply(live, second, YOU, at="x", force=False, rules=rules)["spec"]
    assert merged["ports"] == [{"port": 1, "name": "a"}, {"port": 2, "protocol": "UDP"}]
    assert merged["names"] == ["a", "b"]
    other = custom(ports=[{"port": 1, "protocol": "TCP", "name": "b"}], whole={"b": 1})
    with pytest.raises(ConflictError) as error:
        apply.apply(live, other, YOU, at="x", force=False, rules=rules)
    fields = [each.field for each in error.value.causes]
    assert fields == ['.spec.ports[port=1,protocol="TCP"].name', ".spec.whole"]


def with_variables(names, value):
    env = [{"name": name, "value": value} for name in names]
    metadata = {"name": "d", "finalizers": [f"example.com/{name}" for name in names]}
    container = {"name": "c", "env": env}
    return {"apiVersion": "v1", "metadata": metadata, "spec": {"containers": [container]}}


def test_time_of_managed_fields_is_linear_in_the_length_of_a_list():
    names = [f"v{number}" for number in range(4000)]
    first, second = (FieldManager(name, "Apply") for name in "ab")
    before, after = with_variables(names, "a"), with_variables(names, "b")
    began = time.process_time()
    applied = apply.apply(None, before, first, at="1", force=False)
    with pytest.raises(ConflictError, match="4000 conflicts"):
        apply.apply(applied, after, second, at="2", force=False)
    taken = apply.apply(applied, after, second, at="2", force=True)
    left = apply.apply(taken, with_variables(names[:1], "b"), second, at="3", force=False)
    assert len(left["spec"]["containers"][0]["env"]) == 4000  # The first still owns their names.
    left = apply.apply(left, with_variables(names[:1], "b"), first, at="4", force=False)
    assert left["spec"] == with_variables(names[:1], "b")["spec"]
    created = apply.record_creation(before, FieldManager("c", "Update"), "1")
    changed = {**created, "spec": with_variables(names[::-1], "b")["spec"]}
    apply.record_update(created, changed, FieldManager("d", "Update"), "2")
    assert time.process_time() - began < 15  # by search: three minutes
