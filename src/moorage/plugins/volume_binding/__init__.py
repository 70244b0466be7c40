"""VolumeBinding: a node must access the pod's volumes, have matching ones, or get new ones."""

from moorage.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
