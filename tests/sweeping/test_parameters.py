"""What people may write behind --sweep."""

import pytest

from moorage.errors import InputError
from moorage.sweeping.parameters import Parameter, grid, parse


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("seed=0..3", (0, 1, 2, 3), id="a range, its end included"),
        pytest.param("seed=0..10..5", (0, 5, 10), id="with a step"),
        pytest.param("seed=7", (7,), id="one"),
        pytest.param("seed=1,1..3,9", (1, 2, 3, 9), id="a list of both, nothing twice"),
        pytest.param("seed=-2..0", (-2, -1, 0), id="below zero"),
        pytest.param("config=default,a.yaml", ("default", "a.yaml"), id="names"),
        pytest.param("config.x.y=0.5,true,abc", (0.5, True, "abc"), id="values of all sorts"),
        pytest.param("weight.NodeAffinity=1,5", (1, 5), id="a weight"),
    ],
)
def test_parse(text, values):
    assert parse(text) == Parameter(text.partition("=")[0], values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("seed", "write NAME=VALUES", id="no values"),
        pytest.param("seed=", "write NAME=VALUES", id="nothing behind it"),
        pytest.param("seed=1,,2", "a value is missing", id="a gap"),
        pytest.param("seed=a", 'must be whole numbers, is "a"', id="a word"),
        pytest.param("seed=1.5", 'must be whole numbers, is "1.5"', id="a fraction"),
        pytest.param("seed=5..1", "count upwards", id="backwards"),
        pytest.param("seed=0..100000000", "is too many values; at most", id="too far"),
        pytest.param("seed=1..5..0", "count upwards", id="no step"),
        pytest.param("sede=1", '"sede" is not known', id="a slip"),
        pytest.param("weight.=1", '"weight." is not known', id="a weight of nothing"),
    ],
)
def test_errors(text, message):
    with pytest.raises(InputError, match=message):
        parse(text)


def test_every_combination_in_order():
    assert grid([parse("seed=0..1"), parse("weight.X=1,2")]) == [
        {"seed": 0, "weight.X": 1},
        {"seed": 0, "weight.X": 2},
        {"seed": 1, "weight.X": 1},
        {"seed": 1, "weight.X": 2},
    ]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        pytest.param(["seed=1", "seed=2"], '"seed" is given twice', id="twice"),
        pytest.param(["seed=1..9999", "weight.X=1..9999"], "too many", id="too many"),
    ],
)
def test_grids_that_are_refused(texts, message):
    with pytest.raises(InputError, match=message):
        grid(map(parse, texts))
