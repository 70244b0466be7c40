"""Why a node was picked or rejected: one dry scheduling cycle that keeps every verdict.

dry_run      `explain`: runs the cycle, and reads the decision into an Explanation
explanation  Explanation: the one data model, and its JSON
text, html   renderers; the terminal tables are in `cli`, the report in `reporting`
"""

from moorage.explaining.dry_run import explain
from moorage.explaining.explanation import Explanation

__all__ = ["Explanation", "explain"]
