"""Watch: how news of the cluster reaches one scheduler, on time or not.

Each kind has its own stream, which keeps its order as a Kubernetes watch does: late news holds up
what comes behind it. A watch that is lost drops everything until the kind is listed anew. Stale
news is an older version of an object after a newer one, as a lagging API server sends it; the
newer one follows once more, because such a server catches up in the end.
"""

from typing import Any

from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.core.observations import Deleted, Listed, Observation, Updated
from moorage.sim.clock import Clock
from moorage.sim.cluster import Cluster
from moorage.sim.faults import Trouble
from moorage.sim.happenings import Deliver, Relist


class Watch:
    """The news of all kinds for one scheduler."""

    def __init__(
        self, replica: int, cluster: Cluster, clock: Clock[object], trouble: Trouble
    ) -> None:
        self._replica = replica
        self._cluster = cluster
        self._clock = clock
        self._trouble = trouble
        self._lost: set[type[Any]] = set()
        # Until when a stream is held up; and the versions before the latest, to be stale with.
        self._held_up: dict[type[Any], float] = {}
        self._latest: dict[str, KubeObject] = {}

    def list_everything(self) -> list[Listed]:
        """What a scheduler that starts is told first."""
        listings = (
            Listed(kind.struct, self._cluster.active(kind.struct)) for kind in KINDS.values()
        )
        return [listing for listing in listings if listing.objects]

    def news(self, observation: Observation) -> None:
        """Something changed in the cluster; it may reach the scheduler now, later, or not so."""
        if not self._trouble.is_possible:
            self._clock.schedule(self._clock.now, Deliver(self._replica, observation))
            return
        assert not isinstance(observation, Listed), "a cluster tells changes, it does not list"
        kind, now = type(observation.obj), self._clock.now
        older = self._older(observation)
        if kind in self._lost:
            return
        if self._trouble.loses_watch(now):
            self._lost.add(kind)
            self._clock.in_(self._trouble.relist_after(), Relist(self._replica, kind))
            return
        self._send(kind, observation)
        if self._trouble.is_duplicated(now):
            self._send(kind, observation)
        if older is not None and self._trouble.is_stale(now):
            self._send(kind, Updated(older))
            self._send(kind, observation)

    def relist(self, kind: type[Any]) -> None:
        """A broken watch is mended."""
        self._lost.discard(kind)
        self._send(kind, Listed(kind, self._cluster.active(kind)))

    def _send(self, kind: type[Any], observation: Observation) -> None:
        now = self._clock.now
        at = max(now + self._trouble.lateness(now), self._held_up.get(kind, now))
        self._held_up[kind] = at
        self._clock.schedule(at, Deliver(self._replica, observation))

    def _older(self, observation: Observation) -> KubeObject | None:
        """The version before this one; for a deletion, the last one before it was deleted."""
        assert not isinstance(observation, Listed)
        uid = observation.obj.uid
        older = self._latest.get(uid)
        self._latest[uid] = observation.obj
        return observation.obj if isinstance(observation, Deleted) else older
