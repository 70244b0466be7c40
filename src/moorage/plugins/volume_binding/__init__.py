from moorage.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
