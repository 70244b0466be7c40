from moorage.plugins.fair_share.plugin import FairShare

__all__ = ["FairShare"]
