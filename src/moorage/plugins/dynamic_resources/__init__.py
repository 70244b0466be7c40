from moorage.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
