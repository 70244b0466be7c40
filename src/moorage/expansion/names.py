"""Names as controllers give them: `web-6b7f9c4d8x-2xkzp`.

The letters are Kubernetes' own: without vowels, so that no words come about, and without figures
that look like letters. Where Kubernetes rolls dice, here the name follows from its owner and a
serial number, so that the same input always gives the same names.
"""

import hashlib
from collections.abc import Container

LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
HASH_LENGTH = 10
LONGEST = 253
_COUNT = len(LETTERS) ** SUFFIX_LENGTH
# Has no divisor in common with the count, so that serial numbers never meet in one suffix.
_STRIDE = 5_915_587


def suffix(owner: str, serial: int) -> str:
    """Five letters for the pod of that number; no two numbers of an owner have the same."""
    return _spelled((_number(owner) + serial * _STRIDE) % _COUNT, SUFFIX_LENGTH)


def template_hash(text: str) -> str:
    """Ten letters that tell one pod template from another."""
    return _spelled(_number(text), HASH_LENGTH)


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _spelled(number: int, length: int) -> str:
    letters = []
    for _ in range(length):
        number, rest = divmod(number, len(LETTERS))
        letters.append(LETTERS[rest])
    return "".join(letters)


class Names:
    """Hands out names, none of them twice."""

    def __init__(self) -> None:
        self._serials: dict[str, int] = {}

    def fresh(self, owner: str, prefix: str, taken: Container[str] = ()) -> str:
        """The next name of an owner, such as `web-2xkzp`, that is not taken."""
        while True:
            serial = self._serials.get(owner, 0)
            self._serials[owner] = serial + 1
            letters = suffix(owner, serial)
            name = prefix[: LONGEST - len(letters)] + letters
            if name not in taken:
                return name
