"""Names as controllers generate them.

A generated name such as `web-6b7f9c4d8x-2xkzp` has Kubernetes' letters: no vowels, and no digits
that look like letters. Where Kubernetes uses random letters, these follow from the owner and a
serial number, so the same input always gives the same names.
"""

import hashlib
from collections.abc import Container

from moorage.api.meta import KubeObject

LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
MAX_NAME_LENGTH = 253
_COUNT = len(LETTERS) ** SUFFIX_LENGTH
# Coprime to _COUNT, so that different serial numbers give different suffixes.
_STRIDE = 5_915_587


def suffix(owner: str, serial: int) -> str:
    """Five letters for a pod; different serial numbers of an owner give different suffixes."""
    return _encode((_hash(owner) + serial * _STRIDE) % _COUNT, SUFFIX_LENGTH)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _encode(number: int, length: int) -> str:
    letters = []
    for _ in range(length):
        number, rest = divmod(number, len(LETTERS))
        letters.append(LETTERS[rest])
    return "".join(letters)


class NameGenerator:
    """Generates names, none of them twice."""

    def __init__(self) -> None:
        self._serials: dict[str, int] = {}

    def fresh(self, owner: str, prefix: str, taken: Container[str] = ()) -> str:
        """The next name of an owner, such as `web-2xkzp`, that is not taken."""
        while True:
            serial = self._serials.get(owner, 0)
            self._serials[owner] = serial + 1
            letters = suffix(owner, serial)
            name = prefix[: MAX_NAME_LENGTH - len(letters)] + letters
            if name not in taken:
                return name

    def fresh_of(self, owner: KubeObject, prefix: str, taken: Container[str] = ()) -> str:
        """The next name of an object that an owner creates."""
        key = f"{type(owner).__name__}/{owner.namespace or 'default'}/{owner.name}"
        return self.fresh(key, prefix, taken)
