"""Pod classes: pods of one namespace with the same labels match the same selectors.

So a selector is matched with each class once, and counting pods is adding up classes. A class
exists as long as a pod of it is on any row, with or without a node.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from moorage.api import selectors
from moorage.api.selectors import Selector
from moorage.nodes.usage import LabelKey

if TYPE_CHECKING:
    from moorage.nodes.counters import SelectorCounter


class Clause(NamedTuple):
    """Pods of some namespaces (None: of all) that a selector matches."""

    namespaces: frozenset[str] | None
    selector: Selector

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels is selected."""
        in_scope = self.namespaces is None or namespace in self.namespaces
        return in_scope and self.selector.matches(labels)


Clauses = tuple[Clause, ...]


@dataclass(slots=True, eq=False)
class PodClass:
    """Pods that match the same selectors: how many of them are on each row."""

    namespace: str
    labels: dict[str, str]
    live: dict[int, int] = field(default_factory=dict)
    terminating: dict[int, int] = field(default_factory=dict)
    # The counters that count these pods.
    counters: "list[SelectorCounter]" = field(default_factory=list)

    def matches(self, clauses: Clauses) -> bool:
        """Whether all clauses select these pods."""
        return all(clause.matches(self.namespace, self.labels) for clause in clauses)

    def add(self, row: int, amount: int, *, terminating: bool) -> None:
        """Count pods that come to a row, or leave it."""
        rows = self.terminating if terminating else self.live
        count = rows.get(row, 0) + amount
        assert count >= 0, f"more pods of {self.namespace}/{self.labels} leave than came"
        if count:
            rows[row] = count
        else:
            del rows[row]

    def move(self, row: int, *, terminating: bool) -> None:
        """Count a pod of a row as terminating from now on, or not any more."""
        rows, others = self.terminating, self.live
        if not terminating:
            rows, others = others, rows
        rows[row] = rows.get(row, 0) + 1
        left = others[row] - 1
        if left:
            others[row] = left
        else:
            del others[row]

    @property
    def is_empty(self) -> bool:
        return not self.live and not self.terminating


# Ordered, unlike a set: the order must not depend on hashes.
ClassSet = dict[PodClass, None]


class PodClasses:
    """All classes that have pods, findable by namespace and by label."""

    def __init__(self) -> None:
        self._classes: dict[LabelKey, PodClass] = {}
        self._by_namespace: dict[str, ClassSet] = {}
        # Label key -> value -> classes, for keys that were used.
        self._by_label: dict[str, dict[str, ClassSet]] = {}

    def __len__(self) -> int:
        return len(self._classes)

    def all(self) -> Iterable[PodClass]:
        """Every class."""
        return self._classes.values()

    def get(self, labels: LabelKey) -> PodClass | None:
        """The class of pods with these labels, if it exists."""
        return self._classes.get(labels)

    def new(self, labels: LabelKey) -> PodClass:
        """Add the class of its first pod."""
        namespace, items = labels
        made = self._classes[labels] = PodClass(namespace, dict(sorted(items)))
        self._by_namespace.setdefault(made.namespace, {})[made] = None
        for key, by_value in self._by_label.items():
            if key in made.labels:
                by_value.setdefault(made.labels[key], {})[made] = None
        return made

    def drop(self, labels: LabelKey) -> None:
        """Remove the class of its last pod."""
        gone = self._classes.pop(labels)
        _discard(self._by_namespace, gone.namespace, gone)
        for key, by_value in self._by_label.items():
            if key in gone.labels:
                _discard(by_value, gone.labels[key], gone)

    def matching(self, clauses: Clauses) -> list[PodClass]:
        """The classes that all clauses select."""
        return [each for each in self._candidates(clauses) if each.matches(clauses)]

    def _candidates(self, clauses: Clauses) -> Iterable[PodClass]:
        """Few classes that include all matching ones, found without matching each."""
        if any(clause.selector.matches_nothing for clause in clauses):
            return ()
        for clause in clauses:
            for requirement in clause.selector.requirements:
                if requirement.operator == selectors.IN:
                    by_value = self._listed(requirement.key)
                    return [each for v in requirement.values for each in by_value.get(v, ())]
        scopes = [clause.namespaces for clause in clauses if clause.namespaces is not None]
        if not scopes:
            return self._classes.values()
        smallest = min(scopes, key=lambda names: len(names))
        return [each for name in sorted(smallest) for each in self._by_namespace.get(name, ())]

    def _listed(self, key: str) -> dict[str, ClassSet]:
        by_value = self._by_label.get(key)
        if by_value is None:
            by_value = self._by_label[key] = {}
            for each in self._classes.values():
                if key in each.labels:
                    by_value.setdefault(each.labels[key], {})[each] = None
        return by_value


def _discard(listed: dict[str, ClassSet], name: str, gone: PodClass) -> None:
    del listed[name][gone]
    if not listed[name]:
        del listed[name]
