"""Usage: what the node table counts of one pod.

It is computed once for all pods of a template; adding and removing a pod costs a few additions.
Removal subtracts exactly what was added, however the pod object changed meanwhile.
"""

from dataclasses import dataclass
from operator import itemgetter

from msgspec import Struct

from moorage.api import requests
from moorage.api.pod import Pod
from moorage.nodes import affinity_terms, volumes

# So many pods that sums of smaller amounts fit into 64 bits: 65,536 on a node.
LARGE = 1 << 47
AMOUNT = itemgetter(1)
HostPort = tuple[str, str, int]
# A namespace, and labels: pods that have the same match the same selectors.
LabelKey = tuple[str, frozenset[tuple[str, str]]]


@dataclass(frozen=True, slots=True, eq=False)
class Usage:
    """A pod's requests (cpu in milli, the rest in units), host ports, labels and affinity terms.

    And whether it has volumes that restrict the node, which most pods do not have. Compared by
    identity, so that it is a quick key.
    """

    requested: tuple[tuple[str, int], ...]
    # With a default for containers that request no cpu or memory; of these two only.
    nonzero: tuple[tuple[str, int], ...]
    ports: tuple[HostPort, ...]
    has_volumes: bool
    labels: LabelKey
    # The `content` of `affinity_terms`.
    terms: bytes

    @classmethod
    def of(cls, pod: Pod) -> "Usage":
        """The usage of a pod that is on a node."""
        cpu, memory = requests.nonzero_requested(pod)
        return cls(
            requested=tuple((name, n) for name, n in requests.requested(pod).items() if n),
            nonzero=(("cpu", cpu), ("memory", memory)),
            ports=requests.host_ports(pod),
            has_volumes=volumes.are_telling(pod),
            labels=(pod.namespace, frozenset(pod.labels.items())),
            terms=affinity_terms.content(pod),
        )

    @property
    def is_large(self) -> bool:
        """Whether the sum of such amounts may not fit into 64 bits."""
        return bool(self.requested) and max(self.requested, key=AMOUNT)[1] >= LARGE

    def has_same_requests(self, other: "Usage") -> bool:
        """Whether the requests of two pods are the same."""
        return self.requested == other.requested and self.nonzero == other.nonzero


class Placed(Struct, frozen=True, gc=False):
    """A pod on a node, with its usage."""

    pod: Pod
    usage: Usage
