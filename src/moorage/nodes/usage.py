"""Usage: what one pod uses of its node, as integers.

It is computed once for all pods of a template; adding and removing a pod costs a few additions.
Removal subtracts exactly what was added, however the pod object changed meanwhile.
"""

from dataclasses import dataclass

from msgspec import Struct

from moorage.api import requests
from moorage.api.pod import Pod
from moorage.nodes import volumes

HostPort = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Usage:
    """A pod's requests (cpu in milli, the rest in units), non-zero requests and host ports.

    And whether it has volumes that restrict the node, which most pods do not have.
    """

    requested: tuple[tuple[str, int], ...]
    # With a default for containers that request no cpu or memory; of these two only.
    nonzero: tuple[tuple[str, int], ...]
    ports: tuple[HostPort, ...]
    has_volumes: bool

    @classmethod
    def of(cls, pod: Pod) -> "Usage":
        """The usage of a pod that is on a node."""
        cpu, memory = requests.nonzero_requested(pod)
        return cls(
            requested=tuple((name, n) for name, n in requests.requested(pod).items() if n),
            nonzero=(("cpu", cpu), ("memory", memory)),
            ports=requests.host_ports(pod),
            has_volumes=volumes.are_telling(pod),
        )


class Placed(Struct, frozen=True, gc=False):
    """A pod on a node, with its usage."""

    pod: Pod
    usage: Usage
