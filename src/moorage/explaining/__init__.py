"""Why a node was picked or rejected: one dry scheduling cycle that keeps every verdict.

dry_run      `explain`: runs the cycle, and reads the decision into an Explanation
selecting    which pods a question is about: a name, a workload, labels, all pending ones
grouping     several pods by reason
recorded     the condition and the Event that the cluster's own scheduler wrote
explanation  Explanation: the one data model, and its JSON
text, html   renderers; the terminal tables are in `cli`, the report in `reporting`
"""

from moorage.explaining.dry_run import DryRun, explain
from moorage.explaining.explanation import Explanation

__all__ = ["DryRun", "Explanation", "explain"]
