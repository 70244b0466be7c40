"""Strategic merge of lists against a model that searches the lists for every item."""

import time

from hypothesis import given
from hypothesis import strategies as st

from moorage.cluster.patches import strategic_merge

NAMES = st.sampled_from("abcdefgh")
VALUES = st.integers(0, 2)
ITEMS = st.fixed_dictionaries({"name": NAMES}, optional={"value": VALUES, "other": VALUES})
TARGETS = st.fixed_dictionaries(
    {}, optional={"env": st.lists(ITEMS), "finalizers": st.lists(NAMES), "kept": VALUES}
)


@st.composite
def patches(draw):
    """A patch as kubectl writes it: the order has all items that it keeps or adds."""
    patch = {}
    if draw(st.booleans()):
        merged = draw(st.lists(ITEMS, unique_by=lambda each: each["name"]))
        gone = draw(st.lists(NAMES, unique=True))
        deletions = [{"$patch": "delete", "name": name} for name in gone]
        env = draw(st.permutations([*merged, *deletions]))
        patch["env"] = env
        if draw(st.booleans()):
            names = [each["name"] for each in env if "$patch" not in each]
            for name in draw(st.lists(NAMES)):
                if name not in names:
                    names.insert(draw(st.integers(0, len(names))), name)
            patch["$setElementOrder/env"] = [{"name": name} for name in names]
    elif draw(st.booleans()):
        names = draw(st.lists(NAMES, unique=True))
        patch["$setElementOrder/env"] = [{"name": name} for name in names]
    if draw(st.booleans()):
        patch["finalizers"] = draw(st.lists(NAMES, unique=True))
        patch["$deleteFromPrimitiveList/finalizers"] = draw(st.lists(NAMES))
    if draw(st.booleans()):
        fields = [key for key in patch if not key.startswith("$")]
        patch["$retainKeys"] = [*fields, *draw(st.sampled_from([["kept"], ["env"], []]))]
    return patch


def model(target, patch):
    """The target with the patch, by linear search."""
    result = dict(target)
    if "$retainKeys" in patch:
        result = {key: value for key, value in target.items() if key in patch["$retainKeys"]}
    before = result.get("finalizers", [])
    if "finalizers" in patch:
        added = patch["finalizers"]
        union = [*before, *(each for each in added if each not in before)]
        ordered = in_order(union, added, before, lambda each: each)
        gone = patch["$deleteFromPrimitiveList/finalizers"]
        result["finalizers"] = [each for each in ordered if each not in gone]
    before, order = result.get("env", []), patch.get("$setElementOrder/env")
    items, changes = before, patch.get("env")
    if changes is not None:
        gone = [each["name"] for each in changes if "$patch" in each]
        merged = [each for each in changes if "$patch" not in each]
        items = [each for each in items if each["name"] not in gone]
        for change in merged:
            for position, item in enumerate(items):
                if item["name"] == change["name"]:
                    items[position] = item | change
                    break
            else:
                items.append(change)
        order = merged if order is None else order
    if order is not None and ("env" in result or changes is not None):
        names = [each["name"] for each in order]
        result["env"] = in_order(items, names, before, lambda each: each["name"])
    return result


def in_order(items, names, before, name_of):
    def position(item, listed):
        return listed.index(name_of(item)) if name_of(item) in listed else -1

    old = [name_of(each) for each in before]
    listed = sorted(
        (each for each in items if name_of(each) in names), key=lambda each: position(each, names)
    )
    others = sorted(
        (each for each in items if name_of(each) not in names), key=lambda each: position(each, old)
    )
    result = []
    for each in listed:
        while others and position(others[0], old) < position(each, old):
            result.append(others.pop(0))
        result.append(each)
    return result + others


@given(TARGETS, patches())
def test_lists_merge_as_in_the_model(target, patch):
    assert strategic_merge.apply(target, patch) == model(target, patch)


def test_time_is_linear_in_the_length_of_a_list():
    names = [f"v{number}" for number in range(20_000)]
    before = {"env": [{"name": name, "value": "a"} for name in names], "finalizers": names}
    after = [{"name": name, "value": "b"} for name in reversed(names)]
    order = [{"name": name} for name in reversed(names)]
    patch = {"env": after, "$setElementOrder/env": order, "finalizers": names[::2]}
    patch["$deleteFromPrimitiveList/finalizers"] = names[1::2]
    began = time.process_time()
    assert strategic_merge.apply(before, patch) == {"env": after, "finalizers": names[::2]}
    assert time.process_time() - began < 10  # by search: minutes
