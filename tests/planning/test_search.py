"""Few questions, right answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.planning import search


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300), st.integers(1, 40))
def test_the_smallest_whatever_the_guesses(low, width, answer, guess):
    asked = []

    def lacking(number):
        asked.append(number)
        return 0 if number >= answer else guess

    high = low + width
    expected = max(low, answer) if answer <= high else None
    assert search.smallest(lacking, low, high) == expected
    assert all(low <= number <= high for number in asked)
    assert len(asked) <= 2 * (width + 2).bit_length() + 2


@pytest.mark.parametrize(
    ("answer", "most"),
    [
        pytest.param(100, 1, id="the bound is tight"),
        pytest.param(107, 3, id="a good guess"),
    ],
)
def test_a_good_guess_saves_questions(answer, most):
    asked = []

    def lacking(number):
        asked.append(number)
        return max(0, answer - number)

    assert search.smallest(lacking, 100, 10_000) == answer
    # The one below the answer has to be asked, if it is not the one below the start.
    assert len(asked) <= most + (answer - 100).bit_length()


def test_nothing_to_look_through():
    assert search.smallest(lambda number: 0, 3, 2) is None
