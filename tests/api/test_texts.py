"""Amounts, counts and lists as text for people."""

import pytest

from moorage.api import texts


@pytest.mark.parametrize(
    ("number", "resource", "said"),
    [
        pytest.param(0, "cpu", "0", id="none"),
        pytest.param(250, "cpu", "250m", id="less than a cpu"),
        pytest.param(6890, "cpu", "6.89", id="cpus and a bit"),
        pytest.param(12000, "cpu", "12", id="whole cpus"),
        pytest.param(1_234_567, "cpu", "1234.567", id="very many cpus, exact"),
        pytest.param(70 << 20, "memory", "70Mi", id="whole mebibytes"),
        pytest.param((29 << 30) - (70 << 20), "memory", "28.9Gi", id="rounded"),
        pytest.param(512, "memory", "512", id="bytes"),
        pytest.param(3, "example.com/gpu", "3", id="pieces"),
        pytest.param(2 << 30, "hugepages-2Mi", "2Gi", id="huge pages"),
    ],
)
def test_amount(number, resource, said):
    assert texts.amount(number, resource) == said


def test_two_amounts_are_told_apart():
    gibibyte = 1 << 30
    assert texts.two_amounts(gibibyte, 2 * gibibyte, "memory") == ("1Gi", "2Gi")
    assert texts.two_amounts(gibibyte, gibibyte - 1, "memory") == ("1Gi", "1073741823")
    assert texts.two_amounts(gibibyte, gibibyte, "memory") == ("1Gi", "1Gi")


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes"), (5000, "5,000 nodes")]
)
def test_count(number, said):
    assert texts.count(number, "node") == said


def test_count_with_other_plurals_and_verbs():
    assert [texts.count(number, "try") for number in (1, 2)] == ["1 try", "2 tries"]
    assert [texts.count(n, "pod", "are") for n in (1, 2)] == ["1 pod is", "2 pods are"]
    assert [texts.count(n, "pod", "have") for n in (0, 1)] == ["0 pods have", "1 pod has"]
    assert [texts.verb(number, "fit") for number in (1, 2)] == ["fits", "fit"]


@pytest.mark.parametrize(
    ("names", "width", "said"),
    [
        pytest.param([], 10, "", id="nobody"),
        pytest.param(["a", "b"], 4, "a, b", id="just fits"),
        pytest.param(
            ["a", "b", "c", "d"], 9, "a and 3 more", id="at least one, whatever the width"
        ),
        pytest.param(["a", "b", "c", "d"], 10, "a, b, c, d", id="all"),
        pytest.param(["aaaa", "bbbb", "cccc"], 17, "aaaa, bbbb, cccc", id="all, again"),
        pytest.param(["aaaa"] * 9, 24, "aaaa, aaaa and 7 more", id="some"),
        pytest.param(["a-very-long-name"], 3, "a-very-long-name", id="one that does not fit"),
    ],
)
def test_listed(names, width, said):
    assert texts.listed(names, width) == said
