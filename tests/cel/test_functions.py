"""The functions by family: strings, lists, sets, quantities, versions, addresses, URLs, formats."""

import pytest

from moorage.cel import CelCompileError, CelRuntimeError, DeviceInput, compile_selector

COMPILE, RUNTIME = CelCompileError, CelRuntimeError
DEVICE = DeviceInput("d", {"text": "abc", "number": 7}, {"memory": "1536Mi"})
TEXT, NUMBER = 'device.attributes["d"].text', 'device.attributes["d"].number'
MEMORY = 'device.capacity["d"].memory'


def evaluate(expression):
    try:
        return compile_selector(expression).matches(DEVICE)
    except (CelCompileError, CelRuntimeError) as error:
        return type(error)


STRINGS = [
    ('"abc".contains("b")', True),
    ('"abc".startsWith("ab") && "abc".endsWith("bc")', True),
    ('"héllo".size() == 5', True),
    ('size("abc") == 3', True),
    ('"abc".charAt(1) == "b" && "abc".charAt(3) == ""', True),
    ('"abc".charAt(4) == ""', RUNTIME),
    ('"abcb".indexOf("b") == 1 && "abcb".indexOf("b", 2) == 3', True),
    ('"abc".indexOf("x") == -1', True),
    ('"abc".indexOf("b", 9) == -1 && "abc".indexOf("", 9) == 9', True),
    ('"abc".indexOf("b", -1) == 1', RUNTIME),
    ('"abc".lastIndexOf("b", 3) == -1 && "abc".lastIndexOf("bc", 2) == 1', True),
    ('"abcb".lastIndexOf("b") == 3 && "abcb".lastIndexOf("b", 2) == 1', True),
    ('["a", "b"].join() == "ab" && ["a", "b"].join("-") == "a-b"', True),
    ("[1].join() == ''", COMPILE),
    (f"[{NUMBER}].join() == ''", RUNTIME),
    ('"AbCÉ".lowerAscii() == "abcÉ"', True),
    ('"abcé".upperAscii() == "ABCé"', True),
    ('"a-a".replace("a", "b") == "b-b"', True),
    ('"a-a".replace("a", "b", 1) == "b-a"', True),
    ('"ab".replace("", "_") == "_a_b_"', True),
    ('"a,b".split(",") == ["a", "b"] && "ab".split("") == ["a", "b"]', True),
    ('"a,b,c".split(",", 2) == ["a", "b,c"] && "a,b".split(",", 0) == []', True),
    ('"abc".substring(1) == "bc" && "abc".substring(1, 2) == "b"', True),
    ('"abc".substring(2, 1) == ""', RUNTIME),
    ('"abc".substring(4) == ""', RUNTIME),
    ('"  a\\t".trim() == "a"', True),
    ('"%s is %d, %.2f%%".format(["a", 5, 1.5]) == "a is 5, 1.50%"', True),
    (
        '"%s".format([[1, "a", null, {"k": 1.5}]]) == "[1, \\"a\\", null, {\\"k\\":1.500000}]"',
        True,
    ),
    ('"%x %X %b %o".format([255, "hi", 5, 8]) == "ff 6869 101 10"', True),
    ('["a", 5].size() == 2', COMPILE),  # Only literals in format() may have elements of two types.
    ('"%e %.1e".format([1234.5, 0.00012]) == "1.234500\\u00d710⁰³ 1.200000\\u00d710⁻⁰⁴"', True),
    ('"%.1f %s".format([1234.5, 1e6]) == "1,234.5 1e+06"', True),
    ('"%s %s".format([duration("1m"), [duration("1m")]]) == "60s [duration(\\"60s\\")]"', True),
    ('"%f".format([1]) == ""', RUNTIME),
    ('"%s %s".format(["a"]) == ""', RUNTIME),
    ('"%y".format(["a"]) == ""', RUNTIME),
    ('"%d".format(["a"]) == ""', RUNTIME),
    ('"%.999999999f".format([1.0]) == ""', RUNTIME),
    ('strings.quote("a\\n\\"b\\"") == "\\"a\\\\n\\\\\\"b\\\\\\"\\""', True),
    ('"abc".reverse() == "cba"', COMPILE),  # version 3 of the library
    ('"a100".matches("^[ah]1")', True),
    ('matches("a100", "100$")', True),
    ('"a100".matches("(")', COMPILE),
    (f'"a100".matches("(" + {TEXT})', RUNTIME),
    ('"a100".matches("(?=a)")', COMPILE),  # RE2 has no lookahead
    ('"a12b3".find("[0-9]+") == "12" && "a".find("[0-9]") == ""', True),
    ('"a12b3".findAll("[0-9]+") == ["12", "3"]', True),
    ('"a12b3".findAll("[0-9]+", 1) == ["12"]', True),
    ('"é1".find("[0-9]") == "1"', True),
]
LISTS = [
    ("[1, 2, 2].isSorted() && ![2, 1].isSorted() && [].isSorted()", True),
    ("[1, 2].sum() == 3 && [1.5].sum() == 1.5 && [1u].sum() == 1u", True),
    ('[duration("1m"), duration("1s")].sum() == duration("61s")', True),
    ('["a"].sum() == "a"', COMPILE),
    (f"[{NUMBER}, {TEXT}].sum() == 1", RUNTIME),
    ("[9223372036854775807, 1].sum() > 0", RUNTIME),
    ('[2, 1].min() == 1 && ["a", "b"].max() == "b"', True),
    ("[].max() == 1", RUNTIME),
    ("[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(3) == -1", True),
    ("[1, 2, 3].slice(1, 3) == [2, 3]", True),
    ("[1].slice(0, 2) == [1]", RUNTIME),
    ("[[1], [2, 3]].flatten() == [1, 2, 3]", True),
    ("[1, [2, [3]]].flatten(2).size() == 3", COMPILE),
    ("[[[1]], [[2]]].flatten(2) == [1, 2]", True),
    ("[[1]].flatten(-1) == [1]", RUNTIME),
    ("lists.range(3) == [0, 1, 2]", True),
    ("[1, 2, 1].distinct() == [1, 2]", True),
    ("[[1], [1]].distinct() == [[1]]", True),
    ("[dyn(1), dyn(true), dyn(1u), dyn('1')].distinct().size() == 3", True),
    ("[1, 2].reverse() == [2, 1]", True),
    ("[2, 1].sort() == [1, 2]", True),
    (f"[{NUMBER}, {TEXT}].sort().size() == 2", RUNTIME),
    ("sets.contains([1, 2], [1]) && !sets.contains([1], [1, 2])", True),
    ("sets.equivalent([1, 2, 2], [2, 1])", True),
    ("sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [])", True),
    ("math.greatest(1, 2) == 2", COMPILE),  # not in Kubernetes' environment
]
QUANTITIES = [
    ('quantity("1.5Gi") == quantity("1536Mi")', True),
    (f'{MEMORY}.compareTo(quantity("1.5Gi")) == 0', True),
    (f'{MEMORY}.isGreaterThan(quantity("1G")) && {MEMORY}.isLessThan(quantity("2G"))', True),
    ('quantity("x") == quantity("1")', RUNTIME),
    ('quantity(" 1") == quantity("1")', RUNTIME),
    ('isQuantity("1.3Gi") && !isQuantity("200K") && !isQuantity("Mi")', True),
    ('quantity("50k").add(20).sub(quantity("100k")).sub(-50000) == quantity("20")', True),
    ('quantity("50k").asInteger() == 50000 && !quantity("1500m").isInteger()', True),
    ('quantity("1500m").asInteger() == 1', RUNTIME),
    ('quantity("9999999999999999999999999G").isInteger()', False),
    ('quantity("1500m").asApproximateFloat() == 1.5', True),
    ('sign(quantity("-1")) == -1 && sign(quantity("0")) == 0', True),
    ('quantity("1") < quantity("2")', COMPILE),
    ('quantity("1").add("1") == quantity("2")', COMPILE),
]
VERSIONS = [
    ('semver("1.2.3").major() == 1 && semver("1.2.3").minor() == 2', True),
    ('semver("1.2.3").patch() == 3', True),
    ('semver("1.0.0-rc.2").isLessThan(semver("1.0.0-rc.10"))', True),
    ('semver("1.0.0-rc.1").isLessThan(semver("1.0.0"))', True),
    ('semver("1.0.0-1").isLessThan(semver("1.0.0-a"))', True),
    ('semver("1.0.0-a").isLessThan(semver("1.0.0-a.0"))', True),
    ('semver("1.0.0+a").compareTo(semver("1.0.0+b")) == 0', True),
    ('semver("1.0.0+a") == semver("1.0.0")', True),
    ('semver("2.0.0").isGreaterThan(semver("1.9.9"))', True),
    ('semver("1.0") == semver("1.0.0")', RUNTIME),
    ('semver("01.0.0") == semver("1.0.0")', RUNTIME),
    ('semver("v01.2", true) == semver("1.2.0")', True),
    ('isSemver("1.0.0") && !isSemver("v1.0.0") && isSemver("v1", true)', True),
    ('isSemver("1.0-rc", true)', False),
]
NETWORK = [
    ('ip("10.0.0.1").family() == 4 && ip("::1").isLoopback()', True),
    ('ip("10.0.0.256").family() == 4', RUNTIME),
    ('isIP("::ffff:1.2.3.4") || isIP("fe80::1%eth0") || isIP("010.0.0.1")', False),
    ('ip.isCanonical("2001:db8::1") && !ip.isCanonical("2001:DB8::1")', True),
    ('string(ip("2001:DB8::1")) == "2001:db8::1"', True),
    ('ip("224.0.0.1").isLinkLocalMulticast() && ip("169.254.1.1").isLinkLocalUnicast()', True),
    ('ip("10.0.0.1").isGlobalUnicast() && !ip("0.0.0.0").isGlobalUnicast()', True),
    (
        'cidr("10.0.0.0/8").containsIP("10.1.2.3") && !cidr("10.0.0.0/8").containsIP("11.0.0.1")',
        True,
    ),
    ('cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")', True),
    ('cidr("10.1.0.0/16").containsCIDR(cidr("10.0.0.0/8"))', False),
    ('cidr("10.0.0.0/8").containsIP(ip("::1"))', False),
    ('cidr("10.1.2.3/8").masked() == cidr("10.0.0.0/8")', True),
    ('cidr("10.1.2.3/8").prefixLength() == 8 && cidr("10.1.2.3/8").ip() == ip("10.1.2.3")', True),
    ('isCIDR("10.0.0.0/33") || isCIDR("10.0.0.0") || isCIDR("10.0.0.0/08")', False),
    ('string(cidr("10.0.0.0/8")) == "10.0.0.0/8"', True),
    ('url("https://u:p@a.b:80/p?k=v#f").getHost() == "a.b:80"', True),
    ('url("https://a/p q").getEscapedPath() == "/p%20q"', True),
    ('isURL("https://a b/") || isURL("https://a/\\n")', False),
    ('url("https://a.b:80/p%20q?k=v&k=w").getHost() == "a.b:80"', True),
    (
        'url("https://[::1]:80/p").getHostname() == "::1" && url("https://a:8/").getPort() == "8"',
        True,
    ),
    ('url("https://a/p%20q").getEscapedPath() == "/p%20q"', True),
    ('url("/p?k=v&k=w%20x").getQuery() == {"k": ["v", "w x"]}', True),
    ('url("HTTP://a").getScheme() == "http"', True),
    ('isURL("https://a:x/") || isURL("a/b") || isURL("/%zz") || isURL("")', False),
]
FORMATS = [
    ('!format.dns1123Label().validate("my-name").hasValue()', True),
    ('format.dns1123Label().validate("My.name").value().size() == 1', True),
    ('format.dns1123LabelPrefix().validate("name-").hasValue()', False),
    ('format.dns1123Subdomain().validate("a.b-c").hasValue()', False),
    ('format.dns1035Label().validate("1a").hasValue()', True),
    ('format.qualifiedName().validate("a.b/C_d").hasValue()', False),
    ('format.labelValue().validate("").hasValue()', False),
    ('format.uuid().validate("123e4567-e89b-12d3-a456-426614174000").hasValue()', False),
    ('format.byte().validate("aGVsbG8=").hasValue()', False),
    ('format.date().validate("2024-02-30").hasValue()', True),
    ('format.datetime().validate("2024-02-29T00:00:00Z").hasValue()', False),
    ('format.uri().validate("https://a").hasValue()', False),
    ('format.named("dns1123Label").hasValue() && !format.named("x").hasValue()', True),
]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [*STRINGS, *LISTS, *QUANTITIES, *VERSIONS, *NETWORK, *FORMATS],
)
def test_function(expression, expected):
    assert evaluate(expression) is expected
