"""NodeResourcesFit: is there room for the pod, and how full would the node be?"""

from moorage.plugins.node_resources_fit.plugin import NodeResourcesFit

__all__ = ["NodeResourcesFit"]
