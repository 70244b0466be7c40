"""Storage: the claims of a packing get their volumes at once.

The volume controller of the simulator does the work, on a clock of its own that is wound to the end
whenever somebody asks for news. Delays and failures are no part of a plan.
"""

from collections.abc import Iterable

from moorage.api import claims
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.core.effects import Outcome
from moorage.core.observations import Listed, Observation
from moorage.framework.effects import PatchClaim, PatchVolume
from moorage.sim import performer, volumes
from moorage.sim.clock import Clock
from moorage.sim.cluster import Cluster
from moorage.sim.faults import GOOD, Faults, Trouble
from moorage.sim.volumes import VolumeController

READ = Node | CSINode | StorageClass | PersistentVolume | PersistentVolumeClaim
TOLD = PersistentVolume | PersistentVolumeClaim


def is_needed(obj: KubeObject) -> bool:
    """Whether somebody has to find or make a volume because of this object."""
    if isinstance(obj, Pod):
        return any(volume.ephemeral is not None for volume in obj.spec.volumes)
    return isinstance(obj, PersistentVolumeClaim) and not claims.is_fully_bound(obj)


class Storage:
    """Claims and volumes as an API server would have them, and who binds them."""

    def __init__(self, objects: Iterable[KubeObject], version: int) -> None:
        self._cluster = Cluster()
        self._cluster.version = version  # Newer than what the scheduler has been told so far.
        self._clock: Clock[object] = Clock()
        trouble = Trouble(0, Faults.none())
        self._controller = VolumeController(self._cluster, self._clock, trouble)
        self._news: list[Observation] = []
        self._cluster.watch(self._notice)
        for obj in objects:
            self.add(obj)

    def add(self, obj: KubeObject) -> None:
        """Take an object in, if volumes depend on it."""
        if isinstance(obj, READ) or is_needed(obj):
            self._cluster.create(obj, self._clock.now)

    def remove(self, pod: Pod) -> None:
        """A pod is gone; claims that were its own go with it."""
        if (found := self._cluster.get(Pod, pod.key)) is not None:
            self._cluster.remove(found)

    def perform(self, request: PatchClaim | PatchVolume) -> Outcome:
        """Do what the scheduler asks for."""
        return performer.perform(self._cluster, request, GOOD, self._clock.now, [])

    def news(self) -> list[Observation]:
        """What has become of claims and volumes, once nobody has anything more to do."""
        while len(self._clock):
            what = self._clock.pop()
            assert isinstance(what, volumes.Happening)
            self._controller.happen(what)
        news, self._news = self._news, []
        return news

    def _notice(self, observation: Observation) -> None:
        if not isinstance(observation, Listed) and isinstance(observation.obj, TOLD):
            self._news.append(observation)
