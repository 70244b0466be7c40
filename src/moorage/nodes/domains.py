"""Numbers per topology domain, moved along as pods and nodes come and go, never recounted.

A domain is a value of a label key, and its id is the value's code in that label's column. Nodes
without the label (code 0) belong to no domain; what lies on them is summed apart, in `absent`.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from moorage.nodes.eligibility import Inclusion
from moorage.nodes.interning import ABSENT, LabelColumn, Mask
from moorage.nodes.resources import Ints
from moorage.nodes.table import Rows

