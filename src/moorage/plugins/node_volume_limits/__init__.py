"""NodeVolumeLimits: a CSI driver attaches no more volumes to a node than it can."""

from moorage.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
