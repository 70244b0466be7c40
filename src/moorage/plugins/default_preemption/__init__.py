from moorage.plugins.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
