"""Copies: the same pod again and again, each under a name and with claims of its own."""

from dataclasses import dataclass

from msgspec.structs import replace

from moorage.api.pod import Pod, Volume
from moorage.api.storage import PersistentVolumeClaim
from moorage.planning.packing import Packing
from moorage.planning.situation import Asked, Situation


@dataclass(slots=True)
class Copies:
    """Makes copies by number."""

    pod: Pod
    # Those that each copy gets one of; claims that all copies share are not among them.
    claims: tuple[PersistentVolumeClaim, ...]
    made: int = 0

    @classmethod
    def of(cls, asked: Asked, situation: Situation) -> "Copies":
        """Copies under names with which no other pod's name begins."""
        pod = asked.pod
        name = pod.name
        while any(each.key.startswith(f"{pod.namespace}/{name}.") for each in situation.pods):
            name += "-"
        return cls(replace(pod, metadata=replace(pod.metadata, name=name)), asked.claims)

    @property
    def prefix(self) -> str:
        """What the keys of all copies begin with, and no others."""
        return f"{self.pod.key}."

    def add(self, packing: Packing, number: int) -> Pod:
        """The copy of a number; its claims are told to the packing, once."""
        if number > self.made:
            self.made = number
            for claim in self.claims:
                packing.add(self._claim(claim, number))
        return self._pod(number)

    def _claim(self, claim: PersistentVolumeClaim, number: int) -> PersistentVolumeClaim:
        name, uid = self._claim_name(claim.name, number), f"{claim.uid}.{number}"
        return replace(claim, metadata=replace(claim.metadata, name=name, uid=uid))

    def _claim_name(self, name: str, number: int) -> str:
        return f"{name}.{self.pod.name}.{number}"

    def _pod(self, number: int) -> Pod:
        pod = self.pod
        meta = replace(pod.metadata, name=f"{pod.name}.{number}", uid=f"{pod.uid}.{number}")
        if not self.claims:
            return replace(pod, metadata=meta)
        volumes = tuple(self._volume(volume, number) for volume in pod.spec.volumes)
        return replace(pod, metadata=meta, spec=replace(pod.spec, volumes=volumes))

    def _volume(self, volume: Volume, number: int) -> Volume:
        own = volume.persistent_volume_claim
        if own is None or all(own.claim_name != claim.name for claim in self.claims):
            return volume
        name = self._claim_name(own.claim_name, number)
        return replace(volume, persistent_volume_claim=replace(own, claim_name=name))
