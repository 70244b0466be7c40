"""What a controller would do now: make some objects, remove some pods."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from moorage.api.meta import KubeObject
from moorage.api.pod import Pod


@dataclass(slots=True)
class Wanted:
    """What is lacking, and which pods are too many."""

    made: Sequence[KubeObject] = ()
    surplus: list[Pod] = field(default_factory=list)
