"""Parameters: what differs between the runs of a sweep, as a person writes it.

    seed=0..9                       the seed, from 0 to 9; 0..100..10 is every tenth
    config=default,packed.yaml      whole configurations; a plugin counts as one: spot.py:Spot
    config.podMaxBackoffSeconds=5,10    one field of the configuration; lists by number
    weight.NodeAffinity=1,5         the weight of a score plugin, in all profiles
    nodes.general=100..200..20      how many nodes a NodePool has
    replicas.shop/web=3,6           how many pods a workload has

Several make a grid: every value of each with every value of the others.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moorage.errors import InputError

Value = int | float | bool | str
Parameters = dict[str, Value]

SEED, CONFIG = "seed", "config"
WEIGHT, NODES, REPLICAS, FIELD = "weight.", "nodes.", "replicas.", "config."
PREFIXES = (FIELD, WEIGHT, NODES, REPLICAS)
MOST_RUNS = 1_000_000


@dataclass(frozen=True, slots=True)
class Parameter:
    """A name and the values it takes, in order."""

    name: str
    values: tuple[Value, ...]


def parse(text: str) -> Parameter:
    """`seed=0..9` or `weight.NodeAffinity=1,5`."""
    name, equals, listed = text.partition("=")
    name = name.strip()
    if not equals or not listed.strip():
        raise InputError(f'sweep "{text}": write NAME=VALUES, for example seed=0..9')
    known = name in (SEED, CONFIG) or any(
        name.startswith(prefix) and len(name) > len(prefix) for prefix in PREFIXES
    )
    if not known:
        raise InputError(
            f'sweep "{text}": "{name}" is not known; it may be seed, config, config.FIELD, '
            "weight.PLUGIN, nodes.POOL or replicas.WORKLOAD"
        )
    values = tuple(dict.fromkeys(v for part in listed.split(",") for v in _values(part, text)))
    if name != CONFIG and not name.startswith(FIELD):
        bad = next((value for value in values if not _is_count(value)), None)
        if bad is not None:
            raise InputError(f'sweep "{text}": must be whole numbers, is "{bad}"')
    return Parameter(name, values)


def grid(parameters: Iterable[Parameter]) -> list[Parameters]:
    """Every combination; the last parameter changes fastest."""
    parameters = list(parameters)
    names = [parameter.name for parameter in parameters]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f'sweep: "{twice}" is given twice; list its values with commas')
    runs = math.prod(len(parameter.values) for parameter in parameters)
    if runs > MOST_RUNS:
        raise InputError(f"sweep: {runs:,} runs are too many; at most {MOST_RUNS:,}")
    values: Sequence[tuple[Value, ...]] = [parameter.values for parameter in parameters]
    return [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*values)]


def _values(part: str, text: str) -> Iterable[Value]:
    part = part.strip()
    pieces = part.split("..")
    if len(pieces) not in (2, 3) or not all(_is_integer(piece) for piece in pieces):
        if not part:
            raise InputError(f'sweep "{text}": a value is missing')
        return (_value(part),)
    first, last, step = int(pieces[0]), int(pieces[1]), int(pieces[2]) if pieces[2:] else 1
    if step > 0 and (last - first) // step >= MOST_RUNS:
        raise InputError(f'sweep "{text}": "{part}" is too many values; at most {MOST_RUNS:,}')
    if step <= 0 or last < first:
        raise InputError(f'sweep "{text}": "{part}" has to count upwards, as 0..9 or 0..100..10')
    return range(first, last + 1, step)


def _value(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _is_integer(text: str) -> bool:
    return text.strip().removeprefix("-").isdecimal()


def _is_count(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
