import pytest

from moorage.api.config import durations


@pytest.mark.parametrize(
    ("text", "seconds", "printed"),
    [
        pytest.param("15s", 15.0, "15s", id="seconds"),
        pytest.param("1m30s", 90.0, "1m30s", id="minutes and seconds"),
        pytest.param("90s", 90.0, "1m30s", id="printed in the largest units"),
        pytest.param("10m", 600.0, "10m0s", id="Go prints the zero seconds"),
        pytest.param("1h", 3600.0, "1h0m0s", id="an hour"),
        pytest.param("1.5s", 1.5, "1.5s", id="a fraction"),
        pytest.param(".5s", 0.5, "500ms", id="a fraction without a digit before it"),
        pytest.param("100ms", 0.1, "100ms", id="milliseconds"),
        pytest.param("2us", 2e-06, "2µs", id="microseconds"),
        pytest.param("7ns", 7e-09, "7ns", id="nanoseconds"),
        pytest.param("-3s", -3.0, "-3s", id="negative"),
        pytest.param("0", 0.0, "0s", id="zero needs no unit"),
    ],
)
def test_parse_and_print(text, seconds, printed):
    assert durations.parse(text) == seconds
    assert durations.text(seconds) == printed
    assert durations.parse(printed) == seconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", 'time: invalid duration ""', id="empty"),
        pytest.param("soon", 'time: invalid duration "soon"', id="no number"),
        pytest.param("15", 'time: missing unit in duration "15"', id="no unit"),
        pytest.param("15x", 'time: unknown unit "x" in duration "15x"', id="no such unit"),
        pytest.param("1..5s", 'time: missing unit in duration "1..5s"', id="two points"),
        pytest.param("9999999h", 'time: invalid duration "9999999h"', id="more than Go can hold"),
    ],
)
def test_invalid_durations(text, message):
    with pytest.raises(ValueError, match=r"^time: ") as caught:
        durations.parse(text)
    assert str(caught.value) == message


def test_the_longest_duration_reads_back():
    longest = durations.parse("2562047h47m16.854775807s")
    assert durations.parse(durations.text(longest)) == longest
