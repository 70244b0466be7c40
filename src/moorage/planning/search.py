"""The smallest number of nodes with which something holds, found with few questions."""

from collections.abc import Callable


def smallest(lacking: Callable[[int], int], low: int, high: int) -> int | None:
    """The smallest number from `low` to `high` for which nothing is lacking; None if there is none.

    `lacking(number)` is 0 if the number will do, else a guess at how many more it takes. Every
    question may take seconds, so the guess is followed, by steps that grow, and the last step is
    halved. It is taken for granted that what holds for a number holds for all larger ones. A
    scheduler is no mathematician: where that is not quite so, the answer is still a number that
    will do, with one below it that will not.
    """
    if low > high:
        return None
    number, fails, step = low, low - 1, 1
    while more := lacking(number):
        fails = number
        if number == high:
            return None
        number = min(number + max(more, step), high)
        step *= 2
    while number - fails > 1:
        middle = (number + fails) // 2
        if lacking(middle):
            fails = middle
        else:
            number = middle
    return number
