"""Rules of definitions: what an API server says of them when they are created.

`recorded_rules.jsonl` has the answers of kube-apiserver v1.36.4. The costs of its expressions are
for elements of a list, whose greatest length is such that the estimate just exceeds the limit: the
factor in the answer then has seven digits of it.
"""

import json
import re
from pathlib import Path

import pytest

from moorage.cel import schemas
from moorage.cel.rule import Rule
from moorage.cel.types import BOOL
from moorage.cluster.objects import definition_rules

RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parent / "recorded_rules.jsonl").read_text().splitlines()
]
FIELDS = {
    "s": {"type": "string", "maxLength": 20},
    "t": {"type": "string", "maxLength": 7},
    "e": {"type": "string", "enum": ["ab", "abcd"]},
    "n": {"type": "integer"},
    "d": {"type": "number"},
    "b": {"type": "boolean"},
    "l": {"type": "array", "maxItems": 13, "items": {"type": "string", "maxLength": 5}},
    "i": {"type": "array", "maxItems": 17, "items": {"type": "integer"}},
    "m": {
        "type": "object",
        "maxProperties": 11,
        "additionalProperties": {"type": "string", "maxLength": 6},
    },
    "o": {
        "type": "array",
        "maxItems": 9,
        "items": {
            "type": "object",
            "properties": {"k": {"type": "string", "maxLength": 4}, "v": {"type": "integer"}},
        },
    },
    "y": {"x-kubernetes-int-or-string": True, "maxLength": 8},
    "du": {"type": "string", "format": "duration"},
    "ti": {"type": "string", "format": "date-time"},
    "by": {"type": "string", "format": "byte", "maxLength": 12},
    "q": {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "string", "maxLength": 3}},
    },
}


def definition(*stated):
    versions = [{"name": f"v{i}", "schema": {"openAPIV3Schema": s}} for i, s in enumerate(stated)]
    return {"spec": {"versions": versions}}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["name"])
        for case in RECORDED
        if "schema" in case and "object" not in case
    ],
)
def test_errors_of_definitions(case):
    found = definition_rules.validate(definition(case["schema"]))
    assert sorted([cause.reason, cause.field, cause.message] for cause in found) == case["causes"]


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["rule"]) for case in RECORDED if "rule" in case]
)
def test_estimated_costs(case):
    declaration = schemas.declare({"type": "object", "properties": FIELDS}, "selfType")
    cost = Rule(case["rule"], declaration, result=BOOL).max_cost * case["items"]
    if case["factor"] is None:
        assert cost <= 10_000_000
    else:
        assert round(cost / 10_000_000, 6) == case["factor"]


def test_the_path_of_an_error_is_that_of_its_version_if_versions_differ():
    bad = {"type": "object", "x-kubernetes-validations": [{"rule": "1"}]}
    (cause,) = definition_rules.validate(definition({"type": "object"}, bad))
    assert cause.field == (
        "spec.versions[1].schema.openAPIV3Schema.x-kubernetes-validations[0].rule"
    )


def test_every_error_of_an_expression_is_shown_with_its_place():
    rule = "self.a == 1 &&\nself.b == foo"
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": rule, "message": "m"}]}
    (cause,) = definition_rules.validate(definition(schema))
    assert re.findall(r"<input>:(\S+) (.+)\n \| (.+)\n \| (.+)", cause.message) == [
        ("1:5:", "undefined field 'a'", "self.a == 1 &&", "....^"),
        ("2:5:", "undefined field 'b'", "self.b == foo", "....^"),
        (
            "2:11:",
            "undeclared reference to 'foo' (in container '')",
            "self.b == foo",
            "..........^",
        ),
    ]
