"""Watch: how changes of the cluster reach one scheduler, on time or not.

Each kind has its own stream, which keeps its order as a Kubernetes watch does: a late observation
delays those behind it. A broken watch drops everything until the kind is listed again. A stale
observation is an older version of an object after a newer one, as a lagging API server sends it;
the newer one follows again, because such a server catches up.
"""

from typing import Any

from msgspec import Struct

from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.core.observations import Deleted, Listed, Observation, Updated
from moorage.sim.clock import Clock
from moorage.sim.cluster import MemoryCluster
from moorage.sim.faults import FaultPlan


class DeliverObservation(Struct, frozen=True):
    """An observation reaches a scheduler; replicas are known by number."""

    replica: int
    observation: Observation
    is_late: bool = False  # It arrives after the change, so it is a change for the scheduler.


class Relist(Struct, frozen=True):
    """A broken watch of a kind lists all objects again."""

    replica: int
    kind: type[Any]


class Watch:
    """The watches of all kinds of one scheduler."""

    def __init__(
        self, replica: int, cluster: MemoryCluster, clock: Clock[object], fault_plan: FaultPlan
    ) -> None:
        self._replica = replica
        self._cluster = cluster
        self._clock = clock
        self._fault_plan = fault_plan
        self._broken: set[type[Any]] = set()
        # When the last observation of a kind arrives, and the latest version by UID.
        self._arrives_at: dict[type[Any], float] = {}
        self._latest: dict[str, KubeObject] = {}

    def initial_lists(self) -> list[Listed]:
        """The lists that a scheduler gets when it starts."""
        listings = (
            Listed(kind.struct, self._cluster.active(kind.struct)) for kind in KINDS.values()
        )
        return [listing for listing in listings if listing.objects]

    def send(self, observation: Observation) -> None:
        """Send a change of the cluster, subject to faults."""
        if not self._fault_plan.is_enabled:
            self._clock.schedule(self._clock.now, DeliverObservation(self._replica, observation))
            return
        assert not isinstance(observation, Listed), "a cluster sends changes, it does not list"
        kind, now = type(observation.obj), self._clock.now
        older = self._older(observation)
        if kind in self._broken:
            return
        if self._fault_plan.breaks_watch(now):
            self._broken.add(kind)
            self._clock.in_(self._fault_plan.relist_after(), Relist(self._replica, kind))
            return
        self._deliver(kind, observation)
        if self._fault_plan.is_duplicated(now):
            self._deliver(kind, observation)
        if older is not None and self._fault_plan.is_stale(now):
            self._deliver(kind, Updated(older))
            self._deliver(kind, observation)

    def relist(self, kind: type[Any]) -> None:
        """Repair a broken watch."""
        self._broken.discard(kind)
        self._deliver(kind, Listed(kind, self._cluster.active(kind)))

    def _deliver(self, kind: type[Any], observation: Observation) -> None:
        now = self._clock.now
        at = max(now + self._fault_plan.delay(now), self._arrives_at.get(kind, now))
        self._arrives_at[kind] = at
        is_late = at > now or isinstance(observation, Listed)
        self._clock.schedule(at, DeliverObservation(self._replica, observation, is_late))

    def _older(self, observation: Observation) -> KubeObject | None:
        """The version before this one; for a deletion, the last one before it was deleted."""
        assert not isinstance(observation, Listed)
        uid = observation.obj.uid
        older = self._latest.get(uid)
        self._latest[uid] = observation.obj
        return observation.obj if isinstance(observation, Deleted) else older
