"""DefaultPreemption: a pod that fits nowhere takes the place of less important ones."""

from moorage.plugins.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
