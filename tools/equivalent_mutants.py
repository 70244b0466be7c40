"""Mutants that make no difference, each with the reason. See mutants.py."""

from typing import NamedTuple


class Equivalent(NamedTuple):
    """The lines of a function below src/moorage before and after a change without effect."""

    path: str
    function: str
    before: str
    after: str
    why: str


EQUIVALENT = (
    Equivalent(
        "live/leader_election.py",
        "LeaderElector._retry_seconds",
        "return min(usual, max(left, 0.01)) if left > 0 else usual",
        "return min(usual, max(left, 0.01)) if left >= 0 else usual",
        "differs only if the lease expires in the very instant of the call",
    ),
)
