"""Limits: length, depth, cost and time. Whatever the text, only the two errors are raised."""

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.cel import CelCompileError, CelRuntimeError, DeviceInput, Version, compile_selector

COMPILE, COST = CelCompileError, "cost"
DEVICE = DeviceInput(
    driver="d",
    attributes={"a": "x" * 64, "b": 7, "c": True, "v": Version("1.2.3")},
    capacity={"m": "1Gi"},
)
SECONDS = 20  # of CPU time, for one that hangs; the slowest takes three


def evaluate(expression):
    try:
        return compile_selector(expression).matches(DEVICE)
    except (CelCompileError, CelRuntimeError) as error:
        return COST if "actual cost limit exceeded" in str(error) else type(error)


def chain(first, step, count, last):
    """`cel.bind(v1, first, cel.bind(v2, step(v1), ... last(vN)))`."""
    text, closing = f"cel.bind(v0, {first}, ", ")"
    for index in range(1, count):
        text += f"cel.bind(v{index}, {step.format(f'v{index - 1}')}, "
        closing += ")"
    return text + last.format(f"v{count - 1}") + closing


TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
NESTED = "".join(f"{TEN}.all(x{i}, " for i in range(7)) + "int('1'.find('[0-9]*')) < 100" + ")" * 7


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("true || " * 1200 + "true", True, id="long chain"),
        pytest.param("true" + " " * 11_000, COMPILE, id="longer than 10 KiB"),
        pytest.param("(" * 100 + "true" + ")" * 100, True, id="100 parentheses"),
        pytest.param("(" * 2000 + "true" + ")" * 2000, COMPILE, id="2,000 parentheses"),
        pytest.param("[" * 5000, COMPILE, id="5,000 brackets"),
        pytest.param("{1:" * 3000, COMPILE, id="3,000 braces"),
        pytest.param("!" * 10_000 + "true", True, id="10,000 negations"),
        pytest.param("-" * 10_000 + "1 == 1", True, id="10,000 signs"),
        pytest.param("1" + "+1" * 4000 + " == 0", COMPILE, id="4,000 sums"),
        pytest.param("true ? true : " * 700 + "true", COMPILE, id="700 conditionals"),
        pytest.param("device" + ".a" * 4000, COMPILE, id="4,000 selects"),
        pytest.param("a" + "(" * 3000, COMPILE, id="3,000 calls"),
        pytest.param("1 == " + "9" * 9000, COMPILE, id="9,000 digits"),
        pytest.param(NESTED, COST, id="seven nested loops"),
        pytest.param(NESTED + " || true", COST, id="|| does not absorb the cost limit"),
        pytest.param("lists.range(9223372036854775807).size() > 0", COST, id="huge range"),
        pytest.param("lists.range(900000).all(x, x >= 0)", COST, id="loop over a long list"),
        pytest.param("lists.range(30000).map(x, string(x)).join().size() > 9", True, id="fits"),
        pytest.param(chain('"ab"', "{0} + {0}", 60, "{}.size() > 0"), COST, id="text doubles"),
        pytest.param(chain("[1]", "{0} + {0}", 60, "{}.size() > 0"), COST, id="list doubles"),
        pytest.param(
            chain('"aa"', '{0}.replace("a", "aaaaaaaaaaaaaaaaaaaa")', 60, "{}.size() > 0"),
            COST,
            id="replace multiplies",
        ),
        pytest.param(chain("[1]", "[{0}, {0}]", 100, "{0} == {0}"), COST, id="2**100 leaves"),
        pytest.param(
            chain("[1]", "[{0}, {0}]", 50, chain("[1]", "[{0}, {0}]", 50, "{0} == v49")),
            COST,
            id="equal trees of 2**50 leaves",
        ),
        pytest.param(chain("[1]", "[{0}, {0}]", 100, '"%s".format({}) == ""'), COST, id="text"),
        pytest.param(chain("[1]", "[{0}, {0}]", 100, "1 in [{0}, 1]"), COMPILE, id="in, typed"),
        pytest.param(chain("[1]", "[{0}, {0}]", 90, "{0}.flatten(99) == []"), COST, id="flatten"),
        pytest.param(
            'lists.range(9000).map(x, "(a+)+$").exists(p, "aaaaaaaaaaaaaaaaaaaaaaaab".matches(p))',
            False,
            id="expression that backtracks",
        ),
        pytest.param('"a".matches("' + "(a?){1000}" * 9 + '")', True, id="large automaton"),
        pytest.param(
            "cel.bind(m, lists.range(60000).transformMap(i, v, v),"
            " lists.range(60000).all(i, m[i] == i))",
            True,
            id="lookups in a long map",
        ),
        pytest.param(
            "lists.range(1000).map(x, [x]).distinct().size() == 1000", COST, id="distinct lists"
        ),
    ],
)
def test_ends_in_time(expression, expected):
    start = process_time()
    assert evaluate(expression) is expected
    assert process_time() - start < SECONDS


def test_text_that_is_no_unicode_is_a_compile_error():
    assert evaluate('"\ud800" == ""') is COMPILE


@given(st.text(max_size=60))
def test_random_text_raises_nothing_else(text):
    evaluate(text)


# Mostly well-formed, so that the checker, the compiler and the functions are reached.
WORDS = st.sampled_from(
    [
        "1",
        "-1",
        "0",
        "2u",
        "1.5",
        "1e400",
        "true",
        "false",
        "null",
        "device",
        "x",
        "y",
        "i",
        '"a"',
        "'b'",
        "r'\\d'",
        "b'\\xff'",
        '"%s%d%x"',
        '"1h"',
        '"2024-01-01T00:00:00Z"',
        '"1.2.3"',
        '"10Gi"',
        '"10.0.0.0/8"',
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        "<=",
        "in",
        "&&",
        "||",
        "!",
        "?",
        ":",
        ",",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ".",
        ".?",
        "[?",
        "[]",
        "{}",
        "[1]",
        "device.driver",
        'device.attributes["d"]',
        'device.attributes["d"].a',
        'device.attributes["d"].b',
        'device.capacity["d"].m',
        "size(",
        "has(",
        "int(",
        "string(",
        "dyn(",
        "type(",
        "quantity(",
        "semver(",
        "duration(",
        "timestamp(",
        ".all(x,",
        ".exists(x,",
        ".map(x,",
        ".filter(x,",
        ".transformList(i,x,",
        ".transformMap(i,x,",
        ".sortBy(x,",
        "cel.bind(x,",
        ".size()",
        ".contains(",
        ".split(",
        ".join(",
        ".format([",
        ".matches(",
        ".findAll(",
        ".sum()",
        ".max()",
        ".sort()",
        ".distinct()",
        ".flatten(",
        ".orValue(",
        ".value()",
        ".optMap(x,",
        "optional.of(",
        "lists.range(",
        "sets.contains(",
        "ip(",
        "cidr(",
        "url(",
    ]
)


@settings(max_examples=300)
@given(st.lists(WORDS, max_size=25).map("".join))
def test_random_words_raise_nothing_else(text):
    evaluate(text)


ATOMS = st.sampled_from(
    [
        "1", "-7", "3u", "0.0", "1e308", "true", "null", "'a'", "'é'", "b'a'", "[]", "[1, 2]", "{}",
        "{'a': 1}", "{true: 1}", "device.driver", "device.attributes", "device.attributes['d']",
        "device.attributes['d'].a", "device.attributes['d'].b", "device.attributes['d'].c",
        "device.attributes['d'].v", "device.attributes['d'].?no", "device.capacity['d'].m",
        "optional.none()", "dyn('a')", "dyn([1, 'a'])", "dyn({1: 2})", "duration('1h')",
        "timestamp(0)", "ip('::1')", "cidr('10.0.0.0/8')", "url('/a')", "int", "format.date()",
    ]
)  # fmt: skip
METHODS = [
    "size",
    "isSorted",
    "sum",
    "min",
    "max",
    "sort",
    "distinct",
    "reverse",
    "flatten",
    "first",
    "last",
    "join",
    "trim",
    "lowerAscii",
    "isInteger",
    "asInteger",
    "asApproximateFloat",
    "major",
    "hasValue",
    "value",
    "family",
    "masked",
    "getHost",
    "getQuery",
    "getHours",
    "getSeconds",
    "unwrapOpt",
    "indexOf",
    "contains",
    "startsWith",
    "charAt",
    "substring",
    "split",
    "replace",
    "format",
    "matches",
    "find",
    "findAll",
    "compareTo",
    "add",
    "sub",
    "isLessThan",
    "or",
    "orValue",
    "slice",
    "containsIP",
    "validate",
    "includes",
    "lastIndexOf",
    "endsWith",
]
FUNCTIONS = [
    "size",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "bool",
    "type",
    "dyn",
    "duration",
    "timestamp",
    "quantity",
    "isQuantity",
    "semver",
    "isSemver",
    "sign",
    "ip",
    "isIP",
    "cidr",
    "isCIDR",
    "url",
    "isURL",
    "lists.range",
    "sets.contains",
    "sets.equivalent",
    "strings.quote",
    "optional.of",
    "optional.ofNonZeroValue",
    "optional.unwrap",
    "ip.isCanonical",
    "matches",
]


def grow(inner):
    args = st.lists(inner, max_size=2).map(", ".join)
    operators = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "in", "&&", "||"])
    macros = st.sampled_from(
        ["all", "exists", "exists_one", "map", "filter", "sortBy", "optMap", "optFlatMap"]
    )
    two = st.sampled_from(
        ["all", "exists", "existsOne", "transformList", "transformMap", "transformMapEntry"]
    )
    body = inner | st.sampled_from(["x", "dyn(x) == 1", "{x: x}", "[x]", "x.size() > 0"])
    return st.one_of(
        st.builds("({} {} {})".format, inner, operators, inner),
        st.builds("dyn({}).{}({})".format, inner, st.sampled_from(METHODS), args),
        st.builds("({}).{}({})".format, inner, st.sampled_from(METHODS), args),
        st.builds("{}({})".format, st.sampled_from(FUNCTIONS), args),
        st.builds("dyn({}).{}(x, {})".format, inner, macros, body),
        st.builds("dyn({}).{}(k, x, {})".format, inner, two, body),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("dyn({})[{}]".format, inner, inner),
        st.builds("dyn({})[?{}]".format, inner, inner),
        st.builds("dyn({}).a".format, inner),
        st.builds("has(dyn({}).a)".format, inner),
        st.builds("[{}]".format, args),
        st.builds("{{{}: {}}}".format, inner, inner),
        st.builds("cel.bind(x, {}, {})".format, inner, body),
        st.builds("!{}".format, inner),
        st.builds("-({})".format, inner),
    )


@settings(max_examples=300, deadline=None)
@given(st.recursive(ATOMS, grow, max_leaves=6).map("type({}) == int || true".format))
def test_random_expressions_raise_nothing_else(text):
    evaluate(text)
