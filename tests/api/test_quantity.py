"""Quantities: the grammar, the rounding, and the way back to text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api import quantity

INT64 = st.integers(-(2**63 - 1), 2**63 - 1)  # "-8Ei" is capped: one less than int64 holds


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        pytest.param("1", 10**9, id="a bare number"),
        pytest.param("+1", 10**9, id="a plus sign"),
        pytest.param("-1", -(10**9), id="a minus sign"),
        pytest.param("1.", 10**9, id="a point without digits after it"),
        pytest.param(".5", 5 * 10**8, id="a point without digits before it"),
        pytest.param("1.G", 10**18, id="a bare point before a suffix"),
        pytest.param("007", 7 * 10**9, id="leading zeros"),
        pytest.param(" 5 ", 5 * 10**9, id="surrounding whitespace"),
        pytest.param("1n", 1, id="nano"),
        pytest.param("1u", 1000, id="micro"),
        pytest.param("100m", 10**8, id="milli"),
        pytest.param("1k", 10**12, id="kilo"),
        pytest.param("1E", 10**27, id="E alone is exa"),
        pytest.param("1E3", 10**12, id="E with digits is an exponent"),
        pytest.param("1e-3", 10**6, id="a negative exponent"),
        pytest.param("1e+3", 10**12, id="a signed exponent"),
        pytest.param("1Ki", 1024 * 10**9, id="kibi"),
        pytest.param("1" + 23 * "0" + "Gi", (2**63 - 1) * 10**9, id="binary ones are capped"),
        pytest.param("0.9n", 1, id="finer than a nano rounds away from zero"),
        pytest.param("-0.9n", -1, id="so does a negative one"),
        pytest.param("3.001n", 4, id="a bit more than three nano is four"),
        pytest.param("0.000000000001Ki", 2, id="a tiny binary fraction"),
        pytest.param("0.000n", 0, id="zero stays zero"),
        pytest.param("1e-99999999999", 1, id="an absurdly small exponent is still something"),
        pytest.param(2, 2 * 10**9, id="a JSON integer"),
        pytest.param(0.5, 5 * 10**8, id="a JSON fraction"),
        pytest.param(1e-7, 100, id="a JSON fraction that prints with an exponent"),
    ],
)
def test_nano(text, nano):
    assert quantity.nano(text) == nano


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(" ", id="blank"),
        pytest.param("5x", id="unknown suffix"),
        pytest.param("5mi", id="binary suffixes start with a capital letter"),
        pytest.param("m", id="a suffix alone"),
        pytest.param(".", id="a point alone"),
        pytest.param("1 Gi", id="a space inside"),
        pytest.param("1\n", id="a line end, which JSON escapes"),
        pytest.param("1e", id="an exponent without digits"),
        pytest.param("--1", id="two signs"),
        pytest.param("1_000", id="digits grouped as in Python"),
        pytest.param("٣", id="digits of another script"),
        pytest.param("9" * 5000, id="absurdly long"),
        pytest.param(float("nan"), id="not a number"),
        pytest.param(float("inf"), id="infinite"),
    ],
)
def test_not_a_quantity(text):
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity.nano(text)


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        pytest.param("100.035Ki", 102436, 102435840, id="a binary fraction rounds up"),
        pytest.param("0.5", 1, 500, id="half"),
        pytest.param("1.5Gi", 1610612736, 1610612736000, id="one and a half Gi"),
        pytest.param("1E-3", 1, 1, id="a thousandth"),
        pytest.param("0.9n", 1, 1, id="hardly anything"),
        pytest.param("100m", 1, 100, id="a tenth rounds up to one"),
        pytest.param("0.1005", 1, 101, id="allocatable cpu rounds up"),
        pytest.param("-1.5", -2, -1500, id="a negative one rounds away from zero"),
        pytest.param("9Ei", 2**63 - 1, 0, id="binary is capped, its thousandths overflow"),
        pytest.param("1e30", 0, 0, id="decimal beyond int64 is garbage, not a crash"),
        pytest.param("1E", 10**18, 0, id="an exa in milli overflows"),
        pytest.param("1e999999999999", 0, 0, id="an absurd exponent does not eat the memory"),
    ],
)
def test_value_and_milli(text, value, milli):
    assert (quantity.value(text), quantity.milli(text)) == (value, milli)


@pytest.mark.parametrize(
    ("amount", "resource", "text"),
    [
        pytest.param(500, "cpu", "500m", id="half a cpu"),
        pytest.param(2000, "cpu", "2", id="two cpus"),
        pytest.param(2 * 2**30, "memory", "2Gi", id="gibibytes"),
        pytest.param(1536 * 2**20, "memory", "1536Mi", id="one and a half gibibytes"),
        pytest.param(500_000_000, "memory", "500M", id="decimal megabytes"),
        pytest.param(1001, "memory", "1001", id="an odd number of bytes"),
        pytest.param(0, "memory", "0", id="nothing"),
        pytest.param(2**20, "hugepages-2Mi", "1Mi", id="huge pages are bytes"),
        pytest.param(1024, "nvidia.com/gpu", "1024", id="pieces are counted"),
    ],
)
def test_format_value(amount, resource, text):
    assert quantity.format_value(amount, resource) == text


@given(INT64)
def test_bytes_read_back_as_written(amount):
    assert quantity.nano(quantity.format_value(amount, "memory")) == amount * 10**9


@given(INT64)
def test_cpu_reads_back_as_written(amount):
    assert quantity.milli(quantity.format_value(amount, "cpu")) == amount


@given(st.integers(0, 2**62), st.sampled_from(["", "k", "Ki", "M", "Mi", "m", "u", "n", "e-4"]))
def test_rounding_is_up_and_by_less_than_one(digits, suffix):
    nano = quantity.nano(f"{digits}{suffix}")
    value = quantity.value_of_nano(nano)
    if nano <= (2**63 - 1) * 10**9:
        assert 0 <= value * 10**9 - nano < 10**9


@given(INT64, INT64.filter(bool))
def test_division_truncates_toward_zero(a, b):
    quotient = quantity.truncated_div(a, b)
    remainder = a - quotient * b
    assert abs(remainder) < abs(b)
    assert remainder == 0 or (remainder < 0) == (a < 0)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("4096Mi", "4Gi"),
        ("1536Mi", "1536Mi"),
        ("0.5", "500m"),
        ("0.5Ki", "512"),
        ("1000", "1k"),
        (1000000, "1M"),
        ("1500m", "1500m"),
        ("5e3", "5e3"),
        ("1e6", "1e6"),
        ("0Gi", "0"),
        ("12", "12"),
        ("6442450944", "6442450944"),
    ],
)
def test_canonical_form(given, written):
    assert quantity.canonical(given) == written


def test_binary_form():
    amounts = (6 << 30, 10, 3 << 19, 0)
    assert list(map(quantity.binary_form, amounts)) == ["6Gi", "10", "1536Ki", "0"]
