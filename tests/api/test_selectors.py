"""Label, field and node selectors, their errors, and tolerations."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api import selectors
from moorage.api.meta import LabelSelector, LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from moorage.api.node import Taint
from moorage.api.pod import PreferredSchedulingTerm, Toleration
from moorage.api.selectors import EVERYTHING, NOTHING, Requirement, SelectorError

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value', "
    " or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def expression(key, operator, *values):
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def label_selector(*expressions, **labels):
    return LabelSelector(match_labels=labels, match_expressions=expressions)


def term(*expressions, fields=()):
    return NodeSelectorTerm(match_expressions=expressions, match_fields=tuple(fields))


@pytest.mark.parametrize(
    ("requirement", "labels", "matches"),
    [
        pytest.param(Requirement("a", "In", ("x", "y")), {"a": "y"}, True, id="In, one of them"),
        pytest.param(Requirement("a", "In", ("x",)), {"a": "X"}, False, id="case matters"),
        pytest.param(Requirement("a", "In", ("",)), {}, False, id="In, absent is not empty"),
        pytest.param(Requirement("a", "In", ("",)), {"a": ""}, True, id="In, empty value"),
        pytest.param(Requirement("a", "NotIn", ("x",)), {}, True, id="NotIn on an absent label"),
        pytest.param(Requirement("a", "NotIn", ("x",)), {"a": "x"}, False, id="NotIn, listed"),
        pytest.param(Requirement("a", "Exists"), {"a": ""}, True, id="Exists, empty value"),
        pytest.param(Requirement("a", "Exists"), {"b": "x"}, False, id="Exists, absent"),
        pytest.param(Requirement("a", "DoesNotExist"), {}, True, id="DoesNotExist, absent"),
        pytest.param(Requirement("a", "DoesNotExist"), {"a": "x"}, False, id="DoesNotExist, there"),
        pytest.param(Requirement("a", "Gt", ("0204",)), {"a": "0206"}, True, id="leading zeros"),
        pytest.param(Requirement("a", "Gt", ("5",)), {"a": "5"}, False, id="Gt is strict"),
        pytest.param(Requirement("a", "Gt", ("5",)), {}, False, id="Gt, absent"),
        pytest.param(Requirement("a", "Gt", ("5",)), {"a": "many"}, False, id="Gt, no number"),
        pytest.param(Requirement("a", "Gt", ("5",)), {"a": "1_0"}, False, id="Gt, Python's digits"),
        pytest.param(Requirement("a", "Gt", ("5",)), {"a": str(2**63)}, False, id="Gt, too large"),
        pytest.param(Requirement("a", "Lt", ("5",)), {"a": "-6"}, True, id="Lt, a negative value"),
        pytest.param(Requirement("a", "Near", ("5",)), {"a": "5"}, False, id="unknown operator"),
    ],
)
def test_requirement(requirement, labels, matches):
    assert requirement.matches(labels) is matches


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        pytest.param(None, {"a": "b"}, False, id="no selector matches nothing"),
        pytest.param(LabelSelector(), {}, True, id="an empty one matches everything"),
        pytest.param(label_selector(a="b"), {"a": "b", "c": "d"}, True, id="a subset"),
        pytest.param(label_selector(a="b", c="d"), {"a": "b"}, False, id="one of two"),
        pytest.param(
            label_selector(expression("c", "DoesNotExist"), a="b"), {"a": "b"}, True, id="mixed"
        ),
        pytest.param(
            label_selector(expression("a", "NotIn", "b"), a="b"),
            {"a": "b"},
            False,
            id="contradiction",
        ),
    ],
)
def test_label_selector(selector, labels, matches):
    assert selectors.compile_label_selector(selector).matches(labels) is matches


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param(
            label_selector(service="bad value"),
            f'values[0][service]: Invalid value: "bad value": {VALUE_RULE}',
            id="bad value",
        ),
        pytest.param(
            label_selector(expression("a", "In", "ok", "x" * 64)),
            f'values[1][a]: Invalid value: "{"x" * 64}": must be no more than 63 bytes',
            id="long value",
        ),
        pytest.param(
            label_selector(expression("-", "Exists")),
            f'key: Invalid value: "-": name part {NAME_RULE}',
            id="bad key",
        ),
        pytest.param(
            label_selector(expression("", "Exists")),
            f'key: Invalid value: "": name part must be non-empty; name part {NAME_RULE}',
            id="empty key",
        ),
        pytest.param(
            label_selector(expression("/a", "Exists")),
            'key: Invalid value: "/a": prefix part must be non-empty',
            id="empty prefix",
        ),
        pytest.param(
            label_selector(expression("a/b/c", "Exists")),
            f'key: Invalid value: "a/b/c": a valid label key {NAME_RULE} with an optional DNS '
            "subdomain prefix and '/' (e.g. 'example.com/MyName')",
            id="two slashes",
        ),
        pytest.param(
            label_selector(expression("a", "Near", "b")),
            '"Near" is not a valid label selector operator',
            id="unknown operator",
        ),
        pytest.param(
            label_selector(expression("a", "Gt", "1")),
            '"Gt" is not a valid label selector operator',
            id="an operator of node selectors only",
        ),
        pytest.param(
            label_selector(expression("a", "In")),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="In without values",
        ),
        pytest.param(
            label_selector(expression("a", "Exists", "b", "c")),
            'values: Invalid value: ["b","c"]: '
            "values set must be empty for exists and does not exist",
            id="Exists with values",
        ),
        pytest.param(
            label_selector(expression("/", "In")),
            '[key: Invalid value: "/": prefix part must be non-empty; name part must be non-empty'
            f"; name part {NAME_RULE}, values: Invalid value: null: "
            "for 'in', 'notin' operators, values set can't be empty]",
            id="two errors at once",
        ),
    ],
)
def test_label_selector_errors(selector, text):
    with pytest.raises(SelectorError) as caught:
        selectors.compile_label_selector(selector)
    assert str(caught.value) == text


def test_equal_selectors_compare_equal_whatever_their_order():
    one = selectors.compile_label_selector(
        label_selector(expression("b", "In", "y", "x", "x"), expression("a", "Exists"))
    )
    other = selectors.compile_label_selector(
        label_selector(expression("a", "Exists"), expression("b", "In", "x", "y"))
    )
    assert one == other
    assert hash(one) == hash(other)
    assert [r.key for r in one.requirements] == ["a", "b"]
    assert pickle.loads(pickle.dumps(one)) == one


def test_nothing_and_everything():
    assert (NOTHING.is_empty, EVERYTHING.is_empty) == (False, True)
    assert NOTHING != EVERYTHING
    assert NOTHING.also([selectors.equals("a", "b")]) is NOTHING
    assert not EVERYTHING.also([selectors.equals("a", "b")]).matches({})


@pytest.mark.parametrize(
    ("mapping", "matches"),
    [
        pytest.param(None, True, id="no map"),
        pytest.param({}, True, id="an empty map"),
        pytest.param({"a": "b"}, True, id="a subset of the labels"),
        pytest.param({"not a key!": "b"}, False, id="an invalid key is no error"),
    ],
)
def test_selector_from_map(mapping, matches):
    assert selectors.selector_from_map(mapping).matches({"a": "b", "c": "d"}) is matches


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["", "x", "y", "7", "-8"])
LABELS = st.dictionaries(KEYS, VALUES)
SETS = st.builds(
    Requirement, KEYS, st.sampled_from(["In", "NotIn"]), st.lists(VALUES, min_size=1).map(tuple)
)
PRESENCE = st.builds(Requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"]))
BOUNDS = st.builds(
    Requirement,
    KEYS,
    st.sampled_from(["Gt", "Lt"]),
    st.sampled_from(["5", "9"]).map(lambda v: (v,)),
)


def naive(requirement, labels):
    key, operator, values = requirement
    there = key in labels
    number = int(labels[key]) if there and labels[key].lstrip("-").isdigit() else None
    return {
        "In": there and labels[key] in values,
        "NotIn": not there or labels[key] not in values,
        "Exists": there,
        "DoesNotExist": not there,
        "Gt": number is not None and number > int(values[0]) if operator == "Gt" else None,
        "Lt": number is not None and number < int(values[0]) if operator == "Lt" else None,
    }[operator]


@given(st.lists(SETS | PRESENCE | BOUNDS), LABELS)
def test_selector_agrees_with_a_naive_reading(requirements, labels):
    selector = selectors.Selector(tuple(requirements))
    assert selector.matches(labels) == all(naive(r, labels) for r in requirements)


@pytest.mark.parametrize(
    ("terms", "labels", "name", "matches"),
    [
        pytest.param([], {}, "n1", False, id="no terms"),
        pytest.param([term()], {}, "n1", False, id="an empty term"),
        pytest.param([term(expression("a", "In", "x"))], {"a": "x"}, "n1", True, id="a label"),
        pytest.param(
            [term(expression("a", "NotIn", "not valid!"))], {}, "n1", False, id="an invalid value"
        ),
        pytest.param(
            [term(expression("a", "Near")), term(expression("b", "Exists"))],
            {"b": ""},
            "n1",
            True,
            id="an invalid term does not affect the others",
        ),
        pytest.param(
            [term(expression("a", "Gt", "-1"))], {"a": "5"}, "n1", False, id="a signed bound"
        ),
        pytest.param(
            [term(fields=[expression("metadata.name", "In", "n1")])], {}, "n1", True, id="its name"
        ),
        pytest.param(
            [term(fields=[expression("metadata.name", "NotIn", "n1")])],
            {},
            "n1",
            False,
            id="any but its name",
        ),
        pytest.param(
            [term(fields=[expression("metadata.name", "In", "n1", "n2")])],
            {},
            "n1",
            False,
            id="a field takes one value only",
        ),
        pytest.param(
            [term(fields=[expression("metadata.name", "Exists")])],
            {},
            "n1",
            False,
            id="a field takes In and NotIn only",
        ),
        pytest.param(
            [term(fields=[expression("spec.x", "In", "y")])],
            {},
            "n1",
            False,
            id="unknown field, In",
        ),
        pytest.param(
            [term(fields=[expression("spec.x", "NotIn", "y")])],
            {},
            "n1",
            True,
            id="unknown field, NotIn",
        ),
        pytest.param(
            [term(fields=[expression("metadata.name", "In", "n1")])],
            {},
            "",
            True,
            id="a node without a name has no fields to look at",
        ),
        pytest.param(
            [term(expression("a", "Exists"), fields=[expression("metadata.name", "In", "n1")])],
            {"a": ""},
            "n2",
            False,
            id="labels and fields must both match",
        ),
    ],
)
def test_node_selector(terms, labels, name, matches):
    selector = NodeSelector(node_selector_terms=tuple(terms))
    assert selectors.compile_node_selector(selector).matches(labels, name) is matches


def test_node_selector_has_the_problems_of_invalid_terms():
    bad = term(expression("a", "Near"), fields=[expression("metadata.name", "In")])
    selector = NodeSelector(node_selector_terms=(term(), bad))
    assert selectors.compile_node_selector(selector).problems == (
        'nodeSelectorTerms[1].matchExpressions[0].operator: Unsupported value: "Near": '
        'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
        "nodeSelectorTerms[1].matchFields[0].values: Invalid value: null: must have one element",
    )


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        pytest.param(
            expression("-", "Exists"),
            f'x[0].matchExpressions[0].key: Invalid value: "-": name part {NAME_RULE}',
            id="bad key",
        ),
        pytest.param(
            expression("a", "Gt", "1", "2"),
            'x[0].matchExpressions[0].values: Invalid value: ["1","2"]: '
            "for 'Gt', 'Lt' operators, exactly one value is required",
            id="two bounds",
        ),
        pytest.param(
            expression("a", "Lt", "many"),
            'x[0].matchExpressions[0].values[0]: Invalid value: "many": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
            id="a bound that is no number",
        ),
    ],
)
def test_strict_terms_raise(bad, text):
    with pytest.raises(SelectorError) as caught:
        selectors.compile_node_selector_terms([term(bad)], "x")
    assert str(caught.value) == text
    with pytest.raises(SelectorError) as caught:
        selectors.compile_preferred([PreferredSchedulingTerm(weight=1, preference=term(bad))], "x")
    assert str(caught.value) == text


def test_preferred_omits_terms_without_effect():
    terms = [
        PreferredSchedulingTerm(weight=0, preference=term(expression("a", "Near"))),
        PreferredSchedulingTerm(weight=3, preference=term()),
        PreferredSchedulingTerm(weight=5, preference=term(expression("a", "Exists"))),
    ]
    [(weight, compiled)] = selectors.compile_preferred(terms)
    assert weight == 5
    assert compiled.label_requirements == (Requirement("a", "Exists"),)


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        pytest.param(Toleration(key="k", value="v"), True, id="equal by default, any effect"),
        pytest.param(Toleration(key="k", operator="Equal", value="v"), True, id="equal"),
        pytest.param(Toleration(key="k", value="w"), False, id="another value"),
        pytest.param(Toleration(value="v"), True, id="no key, the value still has to be equal"),
        pytest.param(Toleration(value="w"), False, id="no key, another value"),
        pytest.param(Toleration(key="k", operator="Exists"), True, id="exists"),
        pytest.param(Toleration(operator="Exists"), True, id="everything"),
        pytest.param(
            Toleration(key="k", value="v", effect="PreferNoSchedule"), False, id="another effect"
        ),
        pytest.param(Toleration(key="k", value="v", effect="NoSchedule"), True, id="this effect"),
        pytest.param(Toleration(key="k", operator="Gt", value="0"), False, id="Gt is off"),
        pytest.param(Toleration(key="k", operator="Lt", value="9"), False, id="Lt is off"),
        pytest.param(Toleration(key="k", operator="Like", value="v"), False, id="unknown operator"),
        pytest.param(
            Toleration(key="k", operator="Exists", toleration_seconds=0), True, id="time is ignored"
        ),
    ],
)
def test_tolerates(toleration, tolerated):
    taint = Taint(key="k", value="v", effect="NoSchedule")
    assert selectors.tolerates(toleration, taint) is tolerated
    assert selectors.tolerates_any([Toleration(key="other"), toleration], taint) is tolerated
    assert not selectors.tolerates_any([], taint)


def test_gt_is_off_for_numbers_too():
    taint = Taint(key="k", value="950", effect="NoSchedule")
    assert not selectors.tolerates(Toleration(key="k", operator="Gt", value="750"), taint)


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        pytest.param("", {}, True, id="empty"),
        pytest.param("a=b,c!=d", {"a": "b"}, True, id="equal and not equal"),
        pytest.param(" a == b , c ", {"a": "b", "c": ""}, True, id="spaces, existence"),
        pytest.param("a in (x, y),!c", {"a": "y"}, True, id="a set and absence"),
        pytest.param("a notin (x,y)", {"a": "y"}, False, id="not in a set"),
        pytest.param("in in (in)", {"in": "in"}, True, id="a key named as an operator"),
        pytest.param("a in ()", {"a": ""}, True, id="an empty set holds the empty value"),
        pytest.param("a=", {"a": ""}, True, id="an empty value"),
        pytest.param("a>5", {"a": "6"}, True, id="greater"),
    ],
)
def test_parse_label_selector(text, labels, matches):
    assert selectors.parse_label_selector(text).matches(labels) is matches


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a=b,", id="trailing comma"),
        pytest.param("a b", id="two words"),
        pytest.param("a in x", id="a set without parentheses"),
        pytest.param("a=b=c", id="two equal signs"),
        pytest.param("a in (x", id="an open parenthesis"),
    ],
)
def test_parse_label_selector_errors(text):
    with pytest.raises(SelectorError, match=r"can't understand .* write key=value"):
        selectors.parse_label_selector(text)


def test_parse_label_selector_checks_keys():
    with pytest.raises(SelectorError, match='key: Invalid value: "-"'):
        selectors.parse_label_selector("-=b")


@pytest.mark.parametrize(
    ("text", "fields", "matches"),
    [
        pytest.param("", {}, True, id="empty"),
        pytest.param("status.phase!=Failed,a==b", {"a": "b"}, True, id="two"),
        pytest.param("spec.nodeName=", {}, True, id="an unknown field is empty"),
        pytest.param("a=x", {"a": "y"}, False, id="another value"),
        pytest.param(r"a=x\,y\=z", {"a": "x,y=z"}, True, id="escaped"),
    ],
)
def test_parse_field_selector(text, fields, matches):
    assert selectors.parse_field_selector(text).matches(fields) is matches


def test_parse_field_selector_errors():
    with pytest.raises(SelectorError, match="can't understand 'b', write field=value"):
        selectors.parse_field_selector("a=b,b")
