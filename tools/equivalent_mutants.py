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
        "core/cycle.py",
        "SchedulingCycle._may_repeat",
        "and profile.percentage is None",
        "and profile.percentage is not None",
        "a sample is never the array of all feasible rows, for which alone results are kept; "
        "without a percentage it only costs time",
    ),
    Equivalent(
        "core/effects.py",
        "Outbox.add",
        "ticket: Ticket = self._last_ticket + 1 # type: ignore[assignment] # saves a call",
        "ticket: Ticket = (self._last_ticket - 1) # type: ignore[assignment] # saves a call",
        "tickets have to differ, no matter in which order",
    ),
    Equivalent(
        "core/heap.py",
        "Heap.push",
        "self._serial += 1",
        "self._serial += 2",
        "serial numbers have to grow, no matter by how much",
    ),
    Equivalent(
        "core/pod_group_cycle.py",
        "PodGroupCycle._count",
        "return placement_counts.count(decision, len(members), placements)",
        "return None",
        "without counts the members are tried, with the same result: "
        "tests/properties/test_placement_counts.py",
    ),
    Equivalent(
        "core/requeueing.py",
        "HintMap.covering",
        "self._covering[incoming] = found",
        "pass",
        "a cache: the same is computed again",
    ),
    Equivalent(
        "core/torn_gangs.py",
        "TornGangs._torn",
        "return members if 0 < len(members.scheduled) < (group.min_count or 0) else None",
        "return members if 0 < len(members.scheduled) < (group.min_count or 1) else None",
        "no number is between 0 and 1",
    ),
    Equivalent(
        "live/reflector.py",
        "Reflector._list",
        'self._log.verbose(2, "listed", objects=len(objects), version=version)',
        'self._log.verbose(3, "listed", objects=len(objects), version=version)',
        "the verbosity of a log line is not documented",
    ),
    Equivalent(
        "nodes/domains.py",
        "DomainView.__init__",
        "self.used_at = 0",
        "self.used_at = 1",
        "set again before it is read, by all that make a view",
    ),
    Equivalent(
        "nodes/objects.py",
        "Objects._changed",
        "self._versions[kind] = self.version_of(kind) + 1",
        "self._versions[kind] = self.version_of(kind) + 2",
        "versions have to differ, no matter by how much",
    ),
    Equivalent(
        "nodes/placements.py",
        "Placements._new_view",
        "self._view_count += 1",
        "self._view_count += 2",
        "fewer views are kept, and the others made again; the count is corrected then",
    ),
    *(
        Equivalent(
            "nodes/resource_views.py",
            "FreeBound.compute",
            "self.is_tight = True",
            after,
            "the bound is computed once more, with the same result",
        )
        for after in ("pass", "self.is_tight = False")
    ),
    Equivalent(
        "live/leader_election.py",
        "LeaderElector._retry_seconds",
        "return min(usual, max(left, 0.01)) if left > 0 else usual",
        "return min(usual, max(left, 0.01)) if left >= 0 else usual",
        "differs only if the lease expires in the very instant of the call",
    ),
)
