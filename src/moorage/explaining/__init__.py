"""Why this node, why not that one: a dry cycle that keeps every verdict."""

from moorage.explaining.explanation import Explanation
from moorage.explaining.question import explain

__all__ = ["Explanation", "explain"]
