"""Quantities: "500m" and "2Gi" to exact integers and back.

Structs keep a quantity as it is written. Arithmetic uses exact counts of nano-units, Kubernetes'
finest step, and only the final sum becomes an int64. The caller decides what a unit is: milli-CPU,
bytes, pieces.
"""

import re
from functools import lru_cache

Quantity = str | int | float

NANO = 10**9  # nano-units per unit
MICRO = 10**6  # nano-units per milli-unit
INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)

_GRAMMAR = re.compile(
    r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(?:([KMGTPE]i)|[eE]([+-]?[0-9]+)|([numkMGTPE]))?"
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

# Far beyond int64 and far below a nano-unit; prevents "1e999999999" from filling the memory.
_LONGEST = 1000
_LARGEST_EXPONENT = 1000


def nano(quantity: Quantity) -> int:
    """The exact number of nano-units; raises ValueError for an invalid quantity."""
    if isinstance(quantity, str):
        return _parse(quantity)
    if isinstance(quantity, int):
        return quantity * NANO
    return _parse(repr(quantity))  # The shortest text is the one in the JSON.


def wrapped(number: int) -> int:
    """A number in 64 bits, with overflow as in Go."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def value(quantity: Quantity) -> int:
    """Whole units, rounded up."""
    return value_of_nano(nano(quantity))


def milli(quantity: Quantity) -> int:
    """Thousandths, rounded up."""
    return milli_of_nano(nano(quantity))


def value_of_nano(count: int) -> int:
    """Whole units of an exact sum, rounded up."""
    return rounded_up(count, NANO)


def milli_of_nano(count: int) -> int:
    """Thousandths of an exact sum, rounded up."""
    return rounded_up(count, MICRO)


def rounded_up(count: int, step: int) -> int:
    """An exact sum in steps of `step` nano-units, rounded away from zero."""
    number = -(-count // step) if count >= 0 else count // step
    # Kubernetes does not check for overflow either; its usual result is 0.
    return number if INT64_MIN <= number <= INT64_MAX else 0


def from_nano(count: int) -> Quantity:
    """An exact number of nano-units as a quantity."""
    if count % NANO == 0:
        return count // NANO
    return f"{count // MICRO}m" if count % MICRO == 0 else f"{count}n"


def canonical(quantity: Quantity) -> str:
    """A quantity as an API server writes it: "4096Mi" becomes "4Gi", "0.5" becomes "500m"."""
    match = _GRAMMAR.fullmatch(quantity.strip(" ")) if isinstance(quantity, str) else None
    count = nano(quantity)
    _, _, _, binary, exponent, _ = match.groups() if match is not None else (None,) * 6
    if binary and abs(count) >= 1024 * NANO:
        return binary_form(value_of_nano(count))
    power = -9
    while count and count % 1000 == 0 and power < 18:
        count, power = count // 1000, power + 3
    if not count:
        return "0"
    if exponent is not None:
        return f"{count}e{power}" if power else str(count)
    suffix = next((name for name, each in _DECIMAL.items() if each == power), "")
    return f"{count}{suffix}"


def binary_form(amount: int) -> str:
    """Whole units with the largest suffix of powers of two: 6442450944 is "6Gi"."""
    if abs(amount) < 1024:
        return canonical(amount)
    power = 0
    while amount % 1024 == 0 and power < 60:
        amount, power = amount // 1024, power + 10
    suffix = next((name for name, each in _BINARY.items() if each == power), "")
    return f"{amount}{suffix}"


def truncated_div(a: int, b: int) -> int:
    """Go's integer division: rounds toward zero, where Python's `//` rounds down."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def format_value(amount: int, resource: str) -> str:
    """An amount as a quantity: milli-CPU as "500m" or "2", bytes as "1536Mi"."""
    if resource == "cpu":
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if resource in ("memory", "ephemeral-storage", "storage") or resource.startswith(
        ("hugepages-", "devices/memory.")  # The latter is a counter of partitionable devices.
    ):
        return _format_bytes(amount)
    return str(amount)


@lru_cache(maxsize=65536)
def _parse(text: str) -> int:
    match = _GRAMMAR.fullmatch(text.strip(" ")) if len(text) <= _LONGEST else None
    if match is None:
        raise ValueError(f'"{text[:60]}" is not a quantity')
    sign, whole, fraction, binary, exponent, decimal = match.groups()
    fraction = fraction or ""
    digits = int((whole + fraction) or "0")
    if binary:
        count = _divide_outward((digits << _BINARY[binary]) * NANO, 10 ** len(fraction))
        count = min(count, INT64_MAX * NANO)  # Only binary suffixes are capped.
    else:
        power = _DECIMAL.get(decimal, 0)
        if exponent:
            power = max(-2 * _LONGEST, min(_LARGEST_EXPONENT, int(exponent)))
        count = _scale(digits, power - len(fraction) + 9)
    return -count if sign == "-" else count


def _scale(digits: int, power: int) -> int:
    return digits * 10**power if power >= 0 else _divide_outward(digits, 10**-power)


def _divide_outward(a: int, b: int) -> int:
    """Divide, rounding up, so that a small amount does not become 0; neither is negative."""
    return -(-a // b)


def _format_bytes(amount: int) -> str:
    if amount == 0:
        return "0"
    forms = [str(amount)]
    forms += [
        f"{amount >> power}{suffix}"
        for suffix, power in _BINARY.items()
        if amount % (1 << power) == 0
    ]
    forms += [
        f"{amount // 10**power}{suffix}"
        for suffix, power in _DECIMAL.items()
        if power > 0 and amount % 10**power == 0
    ]
    return min(forms, key=len)
