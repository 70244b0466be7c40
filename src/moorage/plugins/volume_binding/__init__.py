"""VolumeBinding: a pod goes where its claims' volumes are, can be found, or can be made."""

from moorage.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
