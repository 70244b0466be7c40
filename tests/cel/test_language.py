"""The language: literals, operators, macros, optionals, conversions, types, errors."""

import pytest

from moorage.cel import CelCompileError, CelRuntimeError, DeviceInput, Version, compile_selector

COMPILE, RUNTIME = CelCompileError, CelRuntimeError
DEVICE = DeviceInput(
    driver="d.example.com",
    attributes={
        "text": "abc",
        "number": 7,
        "yes": True,
        "version": Version("1.2.3"),
        "other.example.com/text": "xyz",
    },
    capacity={"memory": "40Gi", "other.example.com/slots": 4},
    allow_multiple_allocations=True,
)
A = 'device.attributes["d.example.com"]'
C = 'device.capacity["d.example.com"]'
T = 'timestamp("2024-02-29T12:30:00Z")'


def evaluate(expression, device=DEVICE):
    try:
        return compile_selector(expression).matches(device)
    except (CelCompileError, CelRuntimeError) as error:
        return type(error)


def check(rows):
    return pytest.mark.parametrize(
        ("expression", "expected"), [pytest.param(e, x, id=name) for name, e, x in rows]
    )


@check(
    [
        ("driver", 'device.driver == "d.example.com"', True),
        ("bare name", f'{A}.text == "abc"', True),
        ("qualified name", 'device.attributes["other.example.com"].text == "xyz"', True),
        ("index instead of select", f'{A}["text"] == "abc"', True),
        ("unknown domain is not in the map", '"no" in device.attributes', False),
        ("known domain is in the map", '"d.example.com" in device.attributes', True),
        ("unknown domain is an empty map", 'device.attributes["no"].size() == 0', True),
        ("attribute of an unknown domain", 'device.attributes["no"].x == 1', RUNTIME),
        ("has of an attribute", f"has({A}.text)", True),
        ("has of a missing attribute", f"has({A}.no)", False),
        ("has in an unknown domain", 'has(device.attributes["no"].x)', False),
        ("attribute as result", f"{A}.yes", True),
        ("attribute that is no bool as result", f"{A}.text", RUNTIME),
        ("dyn as result", f"dyn({A}.yes)", COMPILE),
        ("int as result", "1", COMPILE),
        ("attribute or bool as result", f"true ? {A}.yes : false", True),
        ("allowMultipleAllocations", "device.allowMultipleAllocations", True),
        ("field that does not exist", 'device.name == ""', COMPILE),
        ("variable that does not exist", "devices.size() > 0", COMPILE),
        ("version attribute", f'{A}.version.isLessThan(semver("2.0.0"))', True),
        ("quantity of an attribute", f"{A}.number.isInteger()", RUNTIME),
        ("capacity", f'{C}.memory == quantity("40Gi")', True),
        ("capacity as an int", 'device.capacity["other.example.com"].slots.asInteger() == 4', True),
        ("capacity has a type", f"{C}.memory > 3", COMPILE),
        ("capacity as result", f"{C}.memory", COMPILE),
        ("attributes of domains", 'device.attributes.exists_one(d, d == "d.example.com")', True),
        ("attributes as values", f"{A}.exists(k, v, v == 7)", True),
        ("includes on a value", f'{A}.text.includes("abc")', True),
        ("empty expression", "", COMPILE),
    ]
)
def test_device(expression, expected):
    assert evaluate(expression) is expected


@check(
    [
        ("and", "true && false", False),
        ("or", "false || true", True),
        ("or absorbs an error on the left", "1 / 0 > 0 || true", True),
        ("or absorbs an error on the right", "true || 1 / 0 > 0", True),
        ("or does not hide an error", "false || 1 / 0 > 0", RUNTIME),
        ("and absorbs an error", "1 / 0 > 0 && false", False),
        ("and does not hide an error", "true && 1 / 0 > 0", RUNTIME),
        ("and with a value that is no bool", f"{A}.number && false", False),
        ("or with a value that is no bool", f"{A}.number || false", RUNTIME),
        ("and of strings", '"a" && true', COMPILE),
        ("precedence of or and and", "true || false && false", True),
        ("not", "!false", True),
        ("twice not", "!!true", True),
        ("not of a value that is no bool", f"!{A}.number", RUNTIME),
        ("conditional", "1 < 2 ? true : false", True),
        ("conditional is lazy", "true ? true : 1 / 0 > 0", True),
        ("conditional nests to the right", "false ? false : true ? true : false", True),
        ("conditional with a number as test", f"{A}.number ? true : true", RUNTIME),
        ("conditional of two types", "(true ? 1 : 'a') == 1", COMPILE),
        ("sum and product", "1 + 2 * 3 == 7", True),
        ("parentheses", "(1 + 2) * 3 == 9", True),
        ("subtraction is left-associative", "10 - 3 - 2 == 5", True),
        ("division rounds toward zero", "-7 / 2 == -3", True),
        ("modulo has the sign of the dividend", "-7 % 2 == -1", True),
        ("division by zero", "1 / 0 == 1", RUNTIME),
        ("double division by zero", "1.0 / 0.0 > 1e300", True),
        ("int overflow", "9223372036854775807 + 1 > 0", RUNTIME),
        ("int underflow", "-9223372036854775808 - 1 < 0", RUNTIME),
        ("negation overflow", "-(-9223372036854775808) > 0", RUNTIME),
        ("uint underflow", "1u - 2u < 1u", RUNTIME),
        ("smallest int", "-9223372036854775808 < 0", True),
        ("int literal too large", "9223372036854775808 > 0", COMPILE),
        ("uint literal too large", "18446744073709551616u > 0u", COMPILE),
        ("hexadecimal", "0xff == 255 && 0xFFu == 255u", True),
        ("int plus double", "1 + 1.0 > 0.0", COMPILE),
        ("int and uint are ordered", "1 < 2u && 2u > 1 && 1.5 > 1", True),
        ("int equals double only if dynamic", "dyn(1) == 1.0", True),
        ("int and double are not comparable by ==", "1 == 1.0", COMPILE),
        ("bool is not a number", "dyn(true) == 1", False),
        ("values of two types are unequal", "dyn('1') != 1", True),
        ("order of two types", f'{A}.number < "a"', RUNTIME),
        ("order of lists", "[1] < [2]", COMPILE),
        ("order of bools", "false < true", True),
        ("NaN is not equal to itself", "0.0 / 0.0 != 0.0 / 0.0", True),
        ("null", "null == null", True),
        ("null and a quantity", f"{C}.memory == null", False),
        ("null and an int", "1 == null", COMPILE),
        ("null as a quantity", "[quantity('1'), null].size() == 2", COMPILE),
        ("comparisons do not chain", "1 < 2 < 3", COMPILE),
        ("comment", "true // the rest\n && true", True),
        ("reserved word", "while == 1", COMPILE),
        ("concatenation", '"a" + "b" == "ab"', True),
        ("lists are concatenated", "[1] + [2] == [1, 2]", True),
        ("missing operand", "1 +", COMPILE),
        ("missing parenthesis", "(true", COMPILE),
        ("two expressions", "true true", COMPILE),
        ("message literal", "Foo{} == Foo{}", COMPILE),
        ("mixed signs", "!-1 == 1", COMPILE),
    ]
)
def test_operators(expression, expected):
    assert evaluate(expression) is expected


@check(
    [
        ("escapes", r'"\x41\u0042\103\n" == "ABC\n"', True),
        ("quotes", r"""'\'' == "'" && "\"" == '"'""", True),
        ("raw string", r'r"\n".size() == 2', True),
        ("triple quotes", '"""a\n"b""" == "a\\n\\"b"', True),
        ("bytes", r'b"\xff".size() == 1 && b"é".size() == 2', True),
        ("escape that does not exist", r'"\q" == ""', COMPILE),
        ("half a surrogate pair", r'"\ud800" == ""', COMPILE),
        ("string not closed", '"abc', COMPILE),
        ("newline in a string", '"a\nb" == ""', COMPILE),
        ("doubles", "1.5e3 == 1500.0 && .5 == 0.5", True),
        ("trailing comma", "[1, 2,].size() == 2", True),
        ("list of two types", "[1, 'a'].size() == 2", COMPILE),
        ("list with an attribute", f"[{A}.number, 1].size() == 2", COMPILE),
        ("list of attributes", f"[{A}.number, {A}.text].size() == 2", True),
        ("empty lists take the type of others", "[[], [1]].size() == 2", True),
        ("nested list with an attribute", f"([[1]] + [[{A}.text]])[1][0] + 1 == 2", RUNTIME),
        ("sum of such lists", f"(['a'.split('')] + [[{A}.number]])[1][0].size() == 1", RUNTIME),
        ("list index", "[1, 2, 3][1] == 2", True),
        ("list index out of bounds", "[1][1] == 1", RUNTIME),
        ("negative list index", "[1][-1] == 1", RUNTIME),
        ("map", '{"a": 1}["a"] == 1 && {"a": 1}.a == 1', True),
        ("map with int keys", "{1: true}[1]", True),
        ("map with a double key", "{1.0: true}[1.0]", COMPILE),
        ("repeated key", "{1: true, 1: false}[1]", RUNTIME),
        ("missing key", '{"a": 1}["b"] == 1', RUNTIME),
        ("key of another number type", "{1: true}[dyn(1u)]", True),
        ("true is not the key 1", "{1: true}[dyn(true)]", RUNTIME),
        ("in a list", "2 in [1, 2]", True),
        ("in a list of constants of another type", f"{A}.number in ['a']", False),
        ("in an empty list", "1 in []", False),
        ("in a map", '"a" in {"a": 1}', True),
        ("in a string", '"a" in "abc"', COMPILE),
        ("equal lists", "[1, 2] == [1, 2] && [1] != [2]", True),
        ("equal maps", "{'a': [1]} == {'a': [1]} && {'a': 1} != {'b': 1}", True),
        ("field of a string", '"a".b == 1', COMPILE),
        ("field of an attribute", f"{A}.text.b == 1", RUNTIME),
    ]
)
def test_literals(expression, expected):
    assert evaluate(expression) is expected


@check(
    [
        ("all", "[1, 2].all(x, x > 0)", True),
        ("all of nothing", "[].all(x, x > 0)", True),
        ("all absorbs an error", "[0, 1].all(x, 1 / x < 0)", False),
        ("all does not hide an error", "[0, 1].all(x, 1 / x > 0)", RUNTIME),
        ("exists", "[1, 2].exists(x, x == 2)", True),
        ("exists absorbs an error", "[0, 1].exists(x, 1 / x == 1)", True),
        ("exists over keys", '{"a": 1}.exists(k, k == "a")', True),
        ("exists_one", "[1, 2, 2].exists_one(x, x == 1)", True),
        ("exists_one of two", "[1, 2, 2].exists_one(x, x == 2)", False),
        ("exists_one does not absorb errors", "[1, 0].exists_one(x, 1 / x == 1)", RUNTIME),
        ("map", "[1, 2].map(x, x * 2) == [2, 4]", True),
        ("map with a filter", "[1, 2].map(x, x > 1, x * 2) == [4]", True),
        ("filter", "[1, 2].filter(x, x > 1) == [2]", True),
        ("filter over keys", "{1: 2, 3: 4}.filter(k, k > 1) == [3]", True),
        ("nested, with shadowing", "[[1], [2]].all(x, x.all(x, x > 0))", True),
        ("variable does not leak", "[1].all(x, true) && x == 1", COMPILE),
        ("predicate that is no bool", "[1].all(x, x)", COMPILE),
        ("range that is no list", "1.all(x, true)", COMPILE),
        ("range that is an attribute", f"{A}.text.all(x, true)", COMPILE),
        ("range that is no list at run time", f"dyn({A}.text).all(x, true)", RUNTIME),
        ("variable that is no name", "[1].all(x.y, true)", COMPILE),
        ("has of no field", "has(device)", COMPILE),
        ("all with two variables", "[5, 6].all(i, v, v == i + 5)", True),
        ("exists with two variables", '{"a": 1}.exists(k, v, k == "a" && v == 1)', True),
        ("existsOne", "[1, 1].existsOne(i, v, i == 1)", True),
        ("transformList", "[5, 6].transformList(i, v, i + v) == [5, 7]", True),
        ("transformList with a filter", "[5, 6].transformList(i, v, i > 0, v) == [6]", True),
        ("transformMap", '{"a": 1}.transformMap(k, v, v + 1) == {"a": 2}', True),
        ("transformMap of a list", "[5].transformMap(i, v, v) == {0: 5}", True),
        ("transformMapEntry", '{"a": "b"}.transformMapEntry(k, v, {v: k}) == {"b": "a"}', True),
        ("repeated entry", "[1, 1].transformMapEntry(i, v, {v: i}).size() > 0", RUNTIME),
        ("same name twice", "[1].all(x, x, true)", COMPILE),
        ("bind", "cel.bind(x, 1 + 1, x * x == 4)", True),
        ("bind nests", "cel.bind(x, 1, cel.bind(y, x + 1, x + y == 3))", True),
        ("sortBy", '["ab", "c"].sortBy(s, s.size()) == ["c", "ab"]', True),
        ("sortBy without an order", "[[1], [2]].sortBy(x, x).size() == 2", COMPILE),
    ]
)
def test_macros(expression, expected):
    assert evaluate(expression) is expected


@check(
    [
        ("select that is there", f"{A}.?yes.orValue(false)", True),
        ("select that is not there", f"{A}.?no.orValue(true)", True),
        ("select in an unknown domain", 'device.attributes["no"].?x.hasValue()', False),
        ("index", f'{A}[?"text"].value() == "abc"', True),
        ("list index", "[1][?1].hasValue()", False),
        ("select of an optional", "{'a': {'b': 1}}.?a.b.value() == 1", True),
        ("select of none", "{'a': {'b': 1}}.?x.b.hasValue()", False),
        ("value of none", "optional.none().value() == 1", RUNTIME),
        ("or", "optional.none().or(optional.of(1)).value() == 1", True),
        ("orValue of another type", "optional.of(1).orValue('a') == 1", COMPILE),
        ("ofNonZeroValue", "optional.ofNonZeroValue(0).hasValue()", False),
        ("none takes the type of its use", "optional.of(1).or(optional.none()).value() == 1", True),
        (
            "or of two types",
            "optional.of(1).or(optional.none().or(optional.of('a'))).hasValue()",
            COMPILE,
        ),
        ("optMap", "optional.of(1).optMap(x, x + 1).value() == 2", True),
        ("optMap of none", "optional.none().optMap(x, x).hasValue()", False),
        ("optFlatMap", "optional.of(1).optFlatMap(x, optional.of(x)).value() == 1", True),
        ("optional list element", "[?optional.none(), ?optional.of(1)] == [1]", True),
        ("optional map entry", "{?'a': optional.none(), 'b': 1}.size() == 1", True),
        ("list element that is no optional", "[?1] == [1]", COMPILE),
        ("equal optionals", "optional.of(1) == optional.of(1)", True),
        ("none equals none", "optional.none() == optional.none()", True),
        ("first and last", "[1, 2].first().value() + [1, 2].last().value() == 3", True),
        ("unwrap", "optional.unwrap([optional.of(1), optional.none()]) == [1]", True),
        ("optional as result", f"{A}.?yes", COMPILE),
        ("has on optional", "has({'a': {'b': 1}}.?a.b)", True),
    ]
)
def test_optionals(expression, expected):
    assert evaluate(expression) is expected


@check(
    [
        ("int", 'int("-5") == -5 && int(5u) == 5 && int(2.9) == 2', True),
        ("int of a text, at compile time", 'int("x") == 1', COMPILE),
        ("int of a text, at run time", f"int({A}.text) == 1", RUNTIME),
        ("int overflow", "int(1e19) > 0", COMPILE),
        ("uint", 'uint("5") == 5u && uint(5) == 5u', True),
        ("uint of a negative int", f"uint(0 - {A}.number) == 1u", RUNTIME),
        ("double", 'double("1.5") == 1.5 && double(2) == 2.0', True),
        ("bool", 'bool("true") && !bool("f")', True),
        ("bool of another text", 'bool("yes")', COMPILE),
        ("string", 'string(5) + string(5u) + string(true) == "55true"', True),
        ("string of a double", 'string(1.0) + string(0.5) + string(1e6) == "10.51e+06"', True),
        ("string of bytes", 'string(b"abc") == "abc"', True),
        ("string of bad bytes", 'string(b"\\xff") == ""', COMPILE),
        ("string of an attribute", f'string({A}.number) == "7"', True),
        ("string of a quantity", f'string({C}.memory) == ""', COMPILE),
        ("bytes", 'bytes("abc") == b"abc"', True),
        ("type", "type(1) == int && type('a') == string && type([1]) == list", True),
        ("type of an attribute", f"type({A}.number) == int", True),
        ("type of a quantity", f"type({C}.memory) == kubernetes.Quantity", True),
        ("type of a type", "type(int) == type", True),
        ("type of a duration", "type(duration('1s')) == google.protobuf.Duration", True),
        ("duration", 'duration("1h30m") == duration("5400s")', True),
        ("duration that is none", 'duration("1x") > duration("1s")', COMPILE),
        ("duration fields", 'duration("3661s").getHours() == 1', True),
        ("duration arithmetic", 'duration("1h") + duration("1m") > duration("1h")', True),
        ("timestamp", f"{T}.getHours() == 12", True),
        (
            "timestamp with offset",
            'timestamp("2024-01-01T00:00:00+02:00").getMonth() == 11',
            True,
        ),
        ("timestamp that is none", 'timestamp("2024-02-30T00:00:00Z").getHours() == 0', COMPILE),
        ("day of week", f"{T}.getDayOfWeek() == 4", True),
        ("time zone", f'{T}.getHours("-05:00") == 7', True),
        (
            "unknown time zone",
            f'{T}.getHours("No/Where") == 7',
            RUNTIME,
        ),
        (
            "difference",
            f'{T} - timestamp("2024-02-28T12:30:00Z") == duration("24h")',
            True,
        ),
        (
            "text of times",
            'string(duration("90m")) + string(timestamp(0)) == "5400s1970-01-01T00:00:00Z"',
            True,
        ),
        (
            "timestamp overflow",
            'timestamp("9999-12-31T23:59:59Z") + duration("1s") > timestamp(0)',
            RUNTIME,
        ),
        ("seconds since 1970", 'int(timestamp("1970-01-01T00:01:00Z")) == 60', True),
    ]
)
def test_conversions(expression, expected):
    assert evaluate(expression) is expected


@check(
    [
        ("function that does not exist", "foo(1) == 1", COMPILE),
        ("method that does not exist", '"a".foo() == 1', COMPILE),
        ("wrong argument", '"a".contains(1)', COMPILE),
        ("wrong argument at run time", f'"a".contains({A}.number)', RUNTIME),
        ("wrong target at run time", f'{A}.number.contains("a")', RUNTIME),
        ("too many arguments", '"a".contains("a", "b")', COMPILE),
        ("function as method", '"a".quantity() == 1', COMPILE),
        ("method as function", 'startsWith("a", "a")', COMPILE),
        ("name of a function as a variable", "size == 1", COMPILE),
        ("function of a namespace that does not exist", "foo.bar(1) == 1", COMPILE),
    ]
)
def test_calls(expression, expected):
    assert evaluate(expression) is expected
