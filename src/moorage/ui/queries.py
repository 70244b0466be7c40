"""Which nodes, and which pods, a search text matches.

Words are separated by blanks, and all of them have to match:

    worker-1            the name contains it
    label:SELECTOR      labels, as kubectl's -l: label:zone=a,disk!=hdd
    taint:KEY[=VALUE][:EFFECT]
    is:cordoned, is:tainted, is:notready
    pod:TEXT            it has a pod whose namespace/name contains all texts of the search
"""

from collections.abc import Callable
from dataclasses import dataclass

from moorage.api import selectors
from moorage.api.node import Node
from moorage.errors import InputError
from moorage.ui.snapshot import CORDONED, NOT_READY, TAINTED, state_of

MOST_CHARACTERS = 1_000
POD = "pod:"
STATES = {"cordoned": CORDONED, "tainted": TAINTED, "notready": NOT_READY}

Matches = Callable[[Node], bool]


@dataclass(frozen=True, slots=True)
class Query:
    """A search."""

    # The words about nodes, and what the names of pods contain.
    tests: tuple[Matches, ...]
    pod_texts: tuple[str, ...]

    def matches(self, node: Node) -> bool:
        """Whether a node matches all words but those about pods."""
        return all(test(node) for test in self.tests)

    def matches_pod(self, key: str) -> bool:
        """Whether a pod's namespace/name contains all texts."""
        return all(text in key for text in self.pod_texts)


def parse(text: str) -> Query:
    """The search of a text; raises InputError."""
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"a search has at most {MOST_CHARACTERS} characters")
    words = text.split()
    return Query(
        tuple(_word(word) for word in words if not word.startswith(POD)),
        tuple(word.removeprefix(POD) for word in words if word.startswith(POD)),
    )


def _word(word: str) -> Matches:
    kind, colon, rest = word.partition(":")
    match kind if colon else "":
        case "label":
            try:
                selector = selectors.parse_label_selector(rest)
            except selectors.SelectorError as error:
                raise InputError(f"{word}: {error}") from None
            return lambda node: selector.matches(node.labels)
        case "taint":
            return _taint(rest)
        case "is":
            if rest not in STATES:
                raise InputError(f"{word}: must be one of is:{', is:'.join(STATES)}")
            state = STATES[rest]
            return lambda node: bool(state_of(node) & state)
    return lambda node: word in node.name


def _taint(text: str) -> Matches:
    left, _, effect = text.partition(":")
    key, equals, value = left.partition("=")
    return lambda node: any(
        taint.key == key
        and (not equals or taint.value == value)
        and (not effect or taint.effect == effect)
        for taint in node.spec.taints
    )
