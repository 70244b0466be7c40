"""DefaultPreemption: a pod that fits no node evicts less important pods."""

from moorage.plugins.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
