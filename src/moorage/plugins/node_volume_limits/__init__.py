"""NodeVolumeLimits: how many volumes a CSI driver can attach to a node."""

from moorage.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
