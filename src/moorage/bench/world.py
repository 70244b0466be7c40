"""World: the other side of the scheduler. Carries everything out at once, and says so."""

from collections.abc import Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

from moorage.api.claims import BIND_COMPLETED
from moorage.api.meta import Condition, KubeObject
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.core.effects import Done, Effect
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.core.scheduler import Scheduler
from moorage.framework.effects import (
    BindPod,
    DeletePod,
    EmitEvent,
    PatchPodStatus,
    PatchVolume,
    Request,
)

# Virtual time stands still: whoever has to wait for a back-off waits for good.
NOW = 0.0
DONE = Done()
TERMINATING = {"deletion_timestamp": "2026-01-01T00:00:30Z"}

T = TypeVar("T", bound=KubeObject)


class World:
    """See the module."""

    def __init__(
        self, scheduler: Scheduler, pods: Iterable[Pod], others: Iterable[KubeObject] = ()
    ) -> None:
        self.bound = 0
        self.scheduler = scheduler
        self._pods = {pod.uid: pod for pod in pods}
        others = list(others)
        self._volumes = {obj.name: obj for obj in others if isinstance(obj, PersistentVolume)}
        self._claims = {obj.key: obj for obj in others if isinstance(obj, PersistentVolumeClaim)}
        self._version = 1
        self._churn: list[Observation] = []
        self._churn_every = 1

    def churn(self, happens: Iterable[Observation], every: int) -> None:
        """From now on let one of these happen after every so many decisions."""
        self._churn, self._churn_every = [*happens][::-1], every

    def schedule_all(self) -> None:
        """Turn the scheduler until it has nothing left to try."""
        scheduler, turns = self.scheduler, 0
        while scheduler.has_work:
            self._perform(scheduler.schedule_one(NOW))
            if self._churn:
                turns += 1
                if turns % self._churn_every == 0:
                    self._happen(self._churn.pop())

    def _happen(self, observation: Observation) -> None:
        match observation:
            case Deleted(obj=Pod() as pod):
                # As it was last: on its node.
                observation = Deleted(self._pods.pop(pod.uid, pod))
            case Added(obj=Pod() as pod):
                self._pods[pod.uid] = pod
        self._perform(self.scheduler.observe(observation, NOW))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            caused = self.scheduler.complete(effect.ticket, DONE, NOW)
            if caused:
                self._perform(caused)
            request = effect.request
            if type(request) is not EmitEvent:
                self._carry_out(request)

    def _carry_out(self, request: Request) -> None:
        match request:
            case BindPod(pod=ref, node=node):
                self.bound += 1
                pod = self._pods[ref.uid]
                self._shown(pod, spec=replace(pod.spec, node_name=node))
            case PatchPodStatus(pod=ref, condition=Condition() as condition):
                pod = self._pods[ref.uid]
                self._shown(pod, status=replace(pod.status, conditions=(condition,)))
            case DeletePod(pod=ref):
                # Its grace period lasts for good, as time stands still.
                pod = self._pods[ref.uid]
                self._shown(replace(pod, metadata=replace(pod.metadata, **TERMINATING)))
            case PatchVolume() as patch:
                self._bind_volume(patch)

    def _shown(self, pod: Pod, **changes: Any) -> None:
        pod = self._pods[pod.metadata.uid] = self._written(pod, **changes)
        self._perform(self.scheduler.observe(Updated(pod), NOW))

    def _bind_volume(self, patch: PatchVolume) -> None:
        """A volume is given to its claim, and the claim to its volume, as controllers do."""
        volume = self._volumes[patch.name]
        spec = replace(volume.spec, claim_ref=patch.claim)
        volume = self._volumes[patch.name] = self._written(replace(volume, spec=spec))
        self._perform(self.scheduler.observe(Updated(volume), NOW))
        key = f"{patch.claim.namespace}/{patch.claim.name}"
        claim = self._claims[key]
        claim = replace(
            claim,
            metadata=replace(claim.metadata, annotations={BIND_COMPLETED: "yes"}),
            spec=replace(claim.spec, volume_name=patch.name),
            status=replace(claim.status, phase="Bound"),
        )
        claim = self._claims[key] = self._written(claim)
        self._perform(self.scheduler.observe(Updated(claim), NOW))

    def _written(self, obj: T, **changes: Any) -> T:
        self._version += 1
        meta = replace(obj.metadata, resource_version=str(self._version))
        return replace(obj, metadata=meta, **changes)
