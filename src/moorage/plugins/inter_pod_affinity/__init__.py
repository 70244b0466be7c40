"""InterPodAffinity: near the pods that a pod wants company of, away from those it cannot stand."""

from moorage.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
