"""What a claim asks of a volume, wherever the volume is; nodes are not known here."""

from typing import NamedTuple

from moorage.api import claims, selectors
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim


class Wanted(NamedTuple):
    """What a claim asks of a volume; claims that agree in it can have the same ones."""

    storage_class: str
    nano: int
    mode: str
    attributes_class: str
    selector: selectors.Selector | None
    access_modes: tuple[str, ...]

    def allows(self, volume: PersistentVolume) -> bool:
        """Whether a volume would do even if it was reserved for the claim by hand."""
        return (
            claims.capacity_nano(volume) >= self.nano
            and (volume.spec.volume_mode or "Filesystem") == self.mode
            and (volume.spec.volume_attributes_class_name or "") == self.attributes_class
            and volume.metadata.deletion_timestamp is None
        )

    def suits(self, volume: PersistentVolume) -> bool:
        """Whether a volume of the right class that nobody has would do."""
        return (
            self.allows(volume)
            and volume.status.phase == "Available"
            and (self.selector is None or self.selector.matches(volume.labels))
            and all(mode in volume.spec.access_modes for mode in self.access_modes)
        )


def wanted(claim: PersistentVolumeClaim) -> Wanted:
    """What a claim asks for; raises SelectorError for a selector that does not parse."""
    spec = claim.spec
    selector = None if spec.selector is None else selectors.compile_label_selector(spec.selector)
    return Wanted(
        claims.class_of(claim),
        claims.requested_nano(claim),
        spec.volume_mode or "Filesystem",
        spec.volume_attributes_class_name or "",
        selector,
        spec.access_modes,
    )
