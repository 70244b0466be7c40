"""Keys of a queue_sort plugin that cannot be compared with each other, made comparable.

Numbers come first, then text, then bytes, then tuples and lists, whose items are looked at one by
one. Whatever else there may be, None above all, is after all of them: as it came. Keys that could
be compared before keep their order.
"""

from numbers import Real
from typing import Any

NUMBER, TEXT, BYTES, SEVERAL, OTHER = range(5)


def comparable(key: Any) -> tuple[Any, ...]:
    """A key that compares with any other made here."""
    if isinstance(key, Real):
        # What is not even equal to itself has no place among the numbers.
        return (NUMBER, key) if key == key else (OTHER,)
    if isinstance(key, str):
        return TEXT, key
    if isinstance(key, bytes):
        return BYTES, key
    if isinstance(key, tuple | list):
        return SEVERAL, tuple(map(comparable, key))
    return (OTHER,)
