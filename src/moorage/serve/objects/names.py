"""What objects may be called, and the names that they are given."""

import re
from collections.abc import Callable
from random import Random

from moorage.api import labels
from moorage.serve.resources import NAMESPACES, SERVICES, Resource

# Letters and digits that do not easily make words.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_LONGEST_PREFIX = 63 - _SUFFIX_LENGTH

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_is_label = re.compile(_LABEL).fullmatch
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    f"for validation is '{_LABEL}')"
)
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_is_label_1035 = re.compile(_LABEL_1035).fullmatch
_LABEL_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    f"regex used for validation is '{_LABEL_1035}')"
)
_LONGEST_LABEL = 63


def problems(resource: Resource, name: str) -> tuple[str, ...]:
    """What is wrong with an object's name."""
    if resource is NAMESPACES:
        return label_problems(name)
    if resource is SERVICES:
        return _label_problems(name, _is_label_1035, _LABEL_1035_RULE)
    return labels.subdomain_problems(name)


def label_problems(name: str) -> tuple[str, ...]:
    """What is wrong with a DNS label, the rule for namespaces and containers."""
    return _label_problems(name, _is_label, _LABEL_RULE)


def _label_problems(name: str, is_label: Callable[[str], object], rule: str) -> tuple[str, ...]:
    found = []
    if len(name) > _LONGEST_LABEL:
        found.append(f"must be no more than {_LONGEST_LABEL} characters")
    if not is_label(name):
        found.append(rule)
    return tuple(found)


def generate(prefix: str, random: Random) -> str:
    """A name from a `generateName`."""
    suffix = "".join(random.choices(_LETTERS, k=_SUFFIX_LENGTH))
    return prefix[:_LONGEST_PREFIX] + suffix
