"""Selectors and their input: domains, versions, quantities, errors, cache and pickling."""

import pickle
from fractions import Fraction

import pytest

from moorage.cel import CelCompileError, CelRuntimeError, DeviceInput, Version, compile_selector


def matches(expression, attributes=(), capacity=()):
    device = DeviceInput("d.example.com", dict(attributes), dict(capacity))
    return compile_selector(expression).matches(device)


@pytest.mark.parametrize(
    ("amount", "text"),
    [("40Gi", "40Gi"), (4, "4"), (Fraction(3, 2), "1500m"), (Fraction(1, 10**10), "1n")],
)
def test_capacity_is_a_quantity_text_or_a_number(amount, text):
    expression = f'device.capacity["d.example.com"].m == quantity("{text}")'
    assert matches(expression, capacity={"m": amount})


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        pytest.param({"x": None}, "attribute x: unsupported attribute value", id="no value"),
        pytest.param({"x": 1.5}, "attribute x: unsupported attribute value", id="double"),
        pytest.param({"v": Version("1.2")}, "attribute v: parse semantic version", id="version"),
    ],
)
def test_one_bad_attribute_fails_every_expression(attributes, error):
    with pytest.raises(CelRuntimeError, match=error):
        matches("true", attributes)


def test_bad_capacity_fails():
    with pytest.raises(CelRuntimeError, match="quantities must match"):
        matches("true", capacity={"m": "much"})


def test_name_with_a_domain_is_not_in_the_domain_of_the_driver():
    attributes = {"other.example.com/x": 1, "y": 2}
    assert matches('!("x" in device.attributes["d.example.com"])', attributes)
    assert matches('device.attributes["other.example.com"] == {"x": 1}', attributes)


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("?!", "compilation failed: ERROR: <input>:1:1: Syntax error"),
        ("1", "must evaluate to bool or the unknown type, not int"),
        ("[1]", r"must evaluate to bool or the unknown type, not list\(int\)"),
        ("device.x", "undefined field 'x'"),
        ("foo()", r"undeclared reference to 'foo' \(in container ''\)"),
        ("1 + 'a' == 2", r"found no matching overload for '_\+_' applied to '\(int, string\)'"),
        ("[1, 'a'] == []", "expected type 'int' but found 'string'"),
        ("1.all(x, true)", "cannot be range of a comprehension"),
    ],
)
def test_compile_errors_name_the_place_and_the_rule(expression, error):
    with pytest.raises(CelCompileError, match=error):
        compile_selector(expression)


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ('device.attributes["x"].y', "no such key: y"),
        ('device.attributes["d.example.com"].s', "CEL result of type string could not be conv"),
        ('device.attributes["d.example.com"].s > 1', "no such overload"),
        ('dyn(device.attributes["d.example.com"].s).all(x, x)', "'string', expected iterable type"),
        ("[1][int(device.driver.size())] == 1", "index out of bounds: 13"),
    ],
)
def test_runtime_errors_are_the_references(expression, error):
    with pytest.raises(CelRuntimeError, match=error):
        matches(expression, {"s": "text"})


def test_an_expression_is_compiled_once():
    assert compile_selector("true || false") is compile_selector("true || false")


def test_selectors_and_devices_pickle():
    selector = compile_selector('device.attributes["d"].x == 1')
    device = DeviceInput("d", {"x": 1}, {})
    assert selector.matches(device)
    assert pickle.loads(pickle.dumps(selector)).matches(pickle.loads(pickle.dumps(device)))
