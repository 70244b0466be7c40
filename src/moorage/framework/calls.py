"""Status codes of rows from a filter's per-node form."""

from collections.abc import Sequence

from moorage.api.pod import Pod
from moorage.framework.invoke import PluginMethod, filter_one
from moorage.framework.state import CycleState
from moorage.framework.status import SUCCESS, Code, Status

# Up to so many rows the per-node form is cheaper than starting up array operations.
FEW = 6


class Book:
    """Statuses under small negative numbers, for verdicts that were not given as codes."""

    __slots__ = ("_codes", "_statuses", "erred")

    def __init__(self) -> None:
        self.erred = False
        self._codes: dict[Status, int] = {}
        self._statuses: list[Status] = []

    def code(self, status: Status) -> int:
        """The number of a status; 0 for success."""
        if status is SUCCESS or status.code is Code.SUCCESS:
            return 0
        code = self._codes.get(status)
        if code is None:
            self._statuses.append(status)
            self.erred = self.erred or not status.is_rejected
            code = self._codes[status] = -len(self._statuses)
        return code

    def status(self, code: int) -> Status:
        """The status under a number."""
        return self._statuses[-code - 1]


def filter_loop(
    method: PluginMethod, state: CycleState, pod: Pod, rows: Sequence[int], book: Book
) -> dict[int, int]:
    """Codes for some rows from the per-node form, without those that fit."""
    table = state.table
    codes = {}
    for row in rows:
        code = book.code(filter_one(method, state, pod, table.info(row)))
        if code:
            codes[row] = code
    return codes
