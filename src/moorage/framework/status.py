"""Code, Status, and Verdicts: a Status for every row at once.

What can be expected is a value. A plugin returns one of the constants or makers below and never
ERROR: a failure is raised, and the framework names the plugin and fails that one pod. A value is
checked when it is made, so that the error of a wrong one has the plugin's file and line.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage.errors import as_utf8, shown

Mask = NDArray[np.bool_]
Codes = NDArray[np.int64]
Scores = NDArray[np.int64]


class Code(IntEnum):
    """Kubernetes' status codes, in its numeric order."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def label(self) -> str:
        """The code as Kubernetes spells it."""
        return self.name.title().replace("_", "")


REJECTED = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)
# The attribute of an Enum is looked up slowly.
_SUCCESS, _UNSCHEDULABLE, _SKIP = Code.SUCCESS, Code.UNSCHEDULABLE, Code.SKIP


class Status(Struct, frozen=True):
    """What a plugin says: a code, its reasons, and who said it."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    wait_seconds: float | None = None

    def __post_init__(self) -> None:
        if type(self.code) is not Code:
            raise TypeError(f"the code of a Status has to be one of mp.Code, is {shown(self.code)}")
        if type(self.reasons) is not tuple:
            raise TypeError(f"the reasons of a Status have to be a tuple, is {shown(self.reasons)}")
        for reason in self.reasons:
            if not isinstance(reason, str):
                raise TypeError(f"a reason of a Status has to be text, is {shown(reason)}")
            if not reason.isascii():
                reason.encode()  # Raises for a lone surrogate, which no message can have.
        seconds = self.wait_seconds
        if seconds is not None and not (is_number(seconds) and seconds >= 0):
            raise TypeError(f"the seconds to wait have to be 0 or more, is {shown(seconds)}")

    @property
    def is_success(self) -> bool:
        return self.code is _SUCCESS

    @property
    def is_skip(self) -> bool:
        return self.code is _SKIP

    @property
    def is_rejected(self) -> bool:
        """Refused, rather than failed."""
        return self.code in REJECTED

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> "Status":
        """The same, said by a plugin."""
        if self.plugin == plugin:
            return self
        return Status(self.code, self.reasons, plugin, self.wait_seconds)


def is_number(value: object) -> bool:
    """Whether this is an integer, or a float that is not NaN."""
    return isinstance(value, Real) and not math.isnan(value)


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Not now; preempting other pods might help."""
    return Status(_UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Not now, and taking other pods away would not help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def pending(*reasons: str) -> Status:
    """Waits for something outside; a change that cures it skips the back-off."""
    return Status(Code.PENDING, reasons)


def wait(seconds: float, *reasons: str) -> Status:
    """From permit: hold the pod until it is allowed, rejected, or the time is over."""
    return Status(Code.WAIT, reasons, wait_seconds=seconds)


def error(text: str, plugin: str = "") -> Status:
    """Trouble; for the framework, not for plugins, which raise instead."""
    return Status(Code.ERROR, (as_utf8(text),), plugin)


TEXT = frozenset((str,))


class Narrowed(Struct, frozen=True):
    """From pre_filter: only nodes with these names can do."""

    names: frozenset[str]

    def __post_init__(self) -> None:
        if not isinstance(self.names, frozenset):
            raise TypeError(f"the names of nodes have to be a frozenset, is {shown(self.names)}")
        if not {*map(type, self.names)} <= TEXT:
            raise TypeError(f"the names of nodes have to be text, are {shown([*self.names])}")


def only_nodes(names: Sequence[str] | frozenset[str] | set[str]) -> Narrowed:
    """From pre_filter: success, but look at these nodes only."""
    if isinstance(names, str):  # It would be taken for the names of its letters.
        raise TypeError(f"only_nodes takes several names, is {shown(names)}")
    return Narrowed(frozenset(names))


class Verdicts:
    """A Status for every row, as codes: 0 fits, any other is looked up when it is read.

    `Verdicts(fits=mask, otherwise=status)` is the short form for one reason. Codes among `errors`
    stand for rows over which the per-node form would raise, and say with which words.
    `Verdicts(all_fit=number)` says that so many rows fit, without an entry for each.
    """

    __slots__ = ("_codes", "_count", "errors", "status_of")

    def __init__(
        self,
        *,
        fits: Mask | None = None,
        otherwise: Status | None = None,
        codes: Codes | None = None,
        status_of: Callable[[int], Status] | None = None,
        errors: Mapping[int, str] | None = None,
        all_fit: int | None = None,
    ) -> None:
        self.errors = errors or NO_ERRORS
        self._codes: Codes | None = None
        self._count = 0
        if all_fit is not None:
            self._count = _checked_count(all_fit)
            self.status_of: Callable[[int], Status] = ONLY_SUCCESS
        elif fits is not None and otherwise is not None:
            self._codes = np.logical_not(_checked("fits", fits)).astype(np.int64)
            self.status_of = OneStatus(otherwise)
        elif codes is not None and status_of is not None:
            self._codes = _checked("codes", codes).astype(np.int64, copy=False)
            if self._codes.min(initial=0) < 0:
                raise TypeError(f"Verdicts: a code has to be 0 or more, is {self._codes.min()}")
            self.status_of = _WithErrors(status_of, errors) if errors else status_of
        else:
            text = "Verdicts takes fits and otherwise, codes and status_of, or all_fit"
            raise TypeError(text)

    def __len__(self) -> int:
        return self._count if self._codes is None else len(self._codes)

    @property
    def codes(self) -> Codes:
        """An entry for every row."""
        if self._codes is None:
            self._codes = np.zeros(self._count, dtype=np.int64)
        return self._codes

    @property
    def rejects(self) -> bool:
        """Whether any row does not fit."""
        return self._codes is not None and bool(np.count_nonzero(self._codes))


def _checked(name: str, values: object) -> NDArray[Any]:
    """An array of booleans or integers, with an entry per row."""
    array = np.asarray(values)
    if array.ndim == 1 and array.dtype.kind in "biu":
        return array
    raise TypeError(f"Verdicts: {name} has to be one whole number per row, is {shown(values)}")


def _checked_count(count: object) -> int:
    if type(count) is int and count >= 0:
        return count
    if isinstance(count, int | np.integer) and count >= 0:
        return int(count)
    raise TypeError(f"Verdicts: all_fit has to be the number of rows, is {shown(count)}")


class _WithErrors(Struct, frozen=True):
    """Trouble for some codes, a status for the others."""

    status_of: Callable[[int], Status]
    errors: Mapping[int, str]

    def __call__(self, code: int) -> Status:
        text = self.errors.get(code)
        return self.status_of(code) if text is None else error(text)


class OneStatus(Struct, frozen=True):
    """The same status for every code that is not 0."""

    status: Status

    def __call__(self, code: int) -> Status:
        return self.status


ONLY_SUCCESS = OneStatus(SUCCESS)
NO_ERRORS: Mapping[int, str] = MappingProxyType({})


def summarize(
    nodes: int,
    *,
    pre_filter: str = "",
    rejected: Iterable[tuple[Status, int]] = (),
    absent: Status | None = None,
) -> str:
    """Many nodes' rejections in one sentence, as Kubernetes words it.

    0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s).

    `rejected` are statuses with how many nodes have each; all others have `absent`.
    """
    text = f"0/{nodes} nodes are available:"
    if pre_filter:
        return f"{text} {pre_filter}."
    counts: Counter[str] = Counter()
    explicit = 0
    for status, count in rejected:
        explicit += count
        for reason in status.reasons:
            counts[reason] += count
    if absent is not None and explicit < nodes:
        for reason in absent.reasons:
            counts[reason] += nodes - explicit
    # Sorted as text, so "10 x" comes before "2 y": the reference does it so.
    said = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"{text} {', '.join(said)}." if said else text
