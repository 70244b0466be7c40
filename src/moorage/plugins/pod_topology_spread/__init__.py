"""PodTopologySpread: pods of one kind evenly over zones, nodes, or whatever a label tells apart."""

from moorage.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
