"""What a claim requires of a volume; knows nothing of nodes."""

from typing import NamedTuple

from moorage.api import claims, selectors
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim


class VolumeRequirements(NamedTuple):
    """What a claim requires of a volume; claims with equal requirements match the same volumes."""

    storage_class: str
    nano: int
    mode: str
    attributes_class: str
    selector: selectors.Selector | None
    access_modes: tuple[str, ...]

    def allows(self, volume: PersistentVolume) -> bool:
        """Whether a volume that is reserved for the claim (`claimRef`) can be bound to it."""
        return (
            claims.capacity_nano(volume) >= self.nano
            and (volume.spec.volume_mode or "Filesystem") == self.mode
            and (volume.spec.volume_attributes_class_name or "") == self.attributes_class
            and volume.metadata.deletion_timestamp is None
        )

    def accepts(self, volume: PersistentVolume) -> bool:
        """Whether a volume that the claim names (`volumeName`) can be bound to it."""
        is_of_class = claims.class_of(volume) == self.storage_class
        return is_of_class and self.allows(volume) and self.has_modes(volume)

    def has_modes(self, volume: PersistentVolume) -> bool:
        """Whether a volume has all access modes of the claim."""
        return all(mode in volume.spec.access_modes for mode in self.access_modes)

    def suits(self, volume: PersistentVolume) -> bool:
        """Whether an unclaimed volume of the right class can be bound to the claim."""
        return (
            self.allows(volume)
            and volume.status.phase == "Available"
            and (self.selector is None or self.selector.matches(volume.labels))
            and self.has_modes(volume)
        )


def wanted(claim: PersistentVolumeClaim) -> VolumeRequirements:
    """The requirements of a claim; raises SelectorError for an invalid selector."""
    spec = claim.spec
    selector = None if spec.selector is None else selectors.compile_label_selector(spec.selector)
    return VolumeRequirements(
        claims.class_of(claim),
        claims.requested_nano(claim),
        spec.volume_mode or "Filesystem",
        spec.volume_attributes_class_name or "",
        selector,
        spec.access_modes,
    )
