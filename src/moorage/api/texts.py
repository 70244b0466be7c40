"""Amounts, counts and lists of names as text for people.

For reading only: amounts of memory are rounded, lists are cut short. Programs get exact figures.
"""

from collections.abc import Iterable, Mapping, Sequence

from moorage.api import quantity
from moorage.api.meta import LabelSelector, LabelSelectorRequirement

_BINARY = (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))


def amount(number: int, resource: str) -> str:
    """An amount of a resource: `250m` or `6.89` of cpu, `28.9Gi` of memory."""
    if resource == "cpu":
        cpus = f"{number / 1000:.3f}".rstrip("0").rstrip(".")
        return f"{number}m" if 0 < abs(number) < 1000 else cpus
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return _bytes(number)
    return str(number)


def two_amounts(one: int, other: int, resource: str) -> tuple[str, str]:
    """Two amounts that are told apart: exact where rounding would make them look the same."""
    texts = amount(one, resource), amount(other, resource)
    if one != other and quantity.nano(texts[0]) == quantity.nano(texts[1]):
        return quantity.format_value(one, resource), quantity.format_value(other, resource)
    return texts


def _bytes(number: int) -> str:
    for suffix, power in _BINARY:
        if abs(number) >= 1 << power:
            text = f"{number / (1 << power):.1f}"
            return f"{text.removesuffix('.0')}{suffix}"
    return str(number)


_SINGULAR = {"are": "is", "have": "has"}


def count(number: int, noun: str, does: str = "") -> str:
    """`1 node`, `1,200 nodes`, `3 tries`; with a plural verb `1 node fits`, `2 nodes fit`."""
    if number != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun}" + (f" {verb(number, does)}" if does else "")


def verb(number: int, plural: str) -> str:
    """The plural form of a verb, or its singular: `are` or `is`, `fit` or `fits`."""
    return _SINGULAR.get(plural, f"{plural}s") if number == 1 else plural


def listed(names: Sequence[str], width: int) -> str:
    """Names with commas, as many as fit, then how many more there are; at least one is said."""
    whole = ", ".join(names)
    if len(whole) <= width or len(names) < 2:
        return whole
    said = 1
    while said < len(names) and len(_cut(names, said + 1)) <= width:
        said += 1
    return _cut(names, said)


def _cut(names: Sequence[str], said: int) -> str:
    rest = len(names) - said
    return f"{', '.join(names[:said])} and {rest:,} more" if rest else ", ".join(names)


def counted(counts: Mapping[str, int], noun: str, width: int) -> str:
    """`a (3 nodes), b (1 node)`: the most frequent first."""
    often_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return listed([f"{text} ({count(number, noun)})" for text, number in often_first], width)


def requirements(expressions: Iterable[LabelSelectorRequirement]) -> str:
    """`zone In [a, b] and disk Exists`."""
    return " and ".join(
        f"{each.key} {each.operator} [{', '.join(each.values)}]"
        if each.values
        else f"{each.key} {each.operator}"
        for each in expressions
    )


def pods_with(selector: LabelSelector | None) -> str:
    """The pods that a label selector selects: `pods with app=web and tier Exists`."""
    if selector is None:
        return "no pods at all"
    parts = [f"{key}={value}" for key, value in selector.match_labels.items()]
    parts += [requirements((each,)) for each in selector.match_expressions]
    return f"pods with {' and '.join(parts)}" if parts else "pods of any kind"
