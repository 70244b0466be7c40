"""Custom resources against the rules of their schemas, and updates of invalid objects."""

import pytest

from moorage.cluster.objects import custom_rules

from .test_definition_rules import RECORDED

UNCHANGED = "unchanged"


def causes(schema, new, old=None):
    def full(spec):
        meta = {"name": "o0", "namespace": "default"}
        return {"apiVersion": "cmp.example.com/v1", "kind": "T", "metadata": meta, **spec}

    before = full(old) if old is not None else None
    return custom_rules.validate(full(new), before, schema, custom_rules.compile_rules(schema))


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["name"]) for case in RECORDED if "object" in case]
)
def test_recorded_answers(case):
    found = causes(case["schema"], case["object"], case["old"])
    assert sorted([cause.reason, cause.field, cause.message] for cause in found) == case["causes"]


NOT_FOO = {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'foo'"}]}
SHORT = {"type": "string", "maxLength": 2}
KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["key"],
    "items": {"type": "object", "properties": {"key": {"type": "string"}, "field": NOT_FOO}},
}


def schema(**properties):
    return {"type": "object", "properties": {"other": {"type": "string"}, **properties}}


@pytest.mark.parametrize(
    ("part", "old", "new", "fields"),
    [
        pytest.param({"f": NOT_FOO}, {"f": "foo"}, {"f": "foo", "other": "x"}, [], id=UNCHANGED),
        pytest.param({"f": NOT_FOO}, {"f": "bar"}, {"f": "foo"}, ["f"], id="changed"),
        pytest.param({"f": NOT_FOO}, {}, {"f": "foo"}, ["f"], id="new"),
        pytest.param({"f": SHORT}, {"f": "foo"}, {"f": "foo", "other": "x"}, [], id="no rule"),
        pytest.param(
            {"f": {"type": "object", "properties": {"a": SHORT, "b": SHORT}}},
            {"f": {"a": "foo", "b": "bar"}},
            {"f": {"a": "foo", "b": "baz"}},
            ["f.b"],
            id="one of two fields",
        ),
        pytest.param(
            {"f": {"type": "array", "items": NOT_FOO}},
            {"f": ["foo"]},
            {"f": ["foo", "bar"]},
            ["f[0]"],
            id="an element of a changed list without keys",
        ),
        pytest.param(
            {"f": {"type": "array", "items": NOT_FOO}},
            {"f": ["foo"]},
            {"f": ["foo"], "other": "x"},
            [],
            id="a list without keys that is unchanged",
        ),
        pytest.param(
            {"f": KEYED},
            {"f": [{"key": "a", "field": "foo"}]},
            {"f": [{"key": "b", "field": "foo"}, {"key": "a", "field": "foo"}]},
            ["f[0].field"],
            id="an element with a key",
        ),
        pytest.param(
            {"f": {"type": "object", "additionalProperties": NOT_FOO}},
            {"f": {"a": "foo"}},
            {"f": {"a": "foo", "b": "foo"}},
            ["f[b]"],
            id="a value of a map",
        ),
        pytest.param(
            {"f": {"type": "string", "x-kubernetes-validations": [{"rule": "self != oldSelf"}]}},
            {"f": "a"},
            {"f": "a", "other": "x"},
            ["f"],
            id="a rule about the change itself",
        ),
    ],
)
def test_parts_that_do_not_change_may_stay_invalid(part, old, new, fields):
    assert [cause.field for cause in causes(schema(**part), new, old)] == fields


def test_rules_end_when_the_budget_of_an_object_is_used_up():
    tree = custom_rules.compile_rules(schema(f=NOT_FOO, g=NOT_FOO))
    evaluation = custom_rules.Evaluation()
    evaluation.budget = 3
    evaluation.run(tree, {"f": "foo", "g": "foo"}, None)
    first, second = evaluation.causes
    assert first.message == "Invalid value: \"foo\": failed rule: self != 'foo'"
    assert second.message.endswith(
        "validation failed due to running out of cost budget, no further validation rules will be"
        " run"
    )
