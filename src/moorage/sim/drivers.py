"""DeviceDrivers: the device drivers of all nodes, as far as a scheduler notices them.

observed                                        action
a node is gone                                  its slices are removed
the node is back                                its slices are published again
a claim with devices that have binding          PrepareDevices after a while: the conditions
conditions is allocated                         are met, or fail
"""

from msgspec import Struct

from moorage.api.devices import ResourceClaim, ResourceSlice
from moorage.api.node import Node
from moorage.controllers import drivers
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.sim.clock import Clock, timestamp
from moorage.sim.cluster import MemoryCluster
from moorage.sim.faults import FaultPlan


class PrepareDevices(Struct, frozen=True):
    """The drivers of a claim's devices report on its binding conditions."""

    claim: str
    uid: str
    fails: bool


class DeviceDrivers:
    """Publishes and withdraws slices with their nodes, and prepares devices."""

    def __init__(self, cluster: MemoryCluster, clock: Clock[object], fault_plan: FaultPlan) -> None:
        self._cluster = cluster
        self._clock = clock
        self._fault_plan = fault_plan
        self._withdrawn: dict[str, list[ResourceSlice]] = {}
        self._preparing: set[str] = set()
        cluster.watch(self._observe, Node, ResourceClaim)

    def perform(self, what: PrepareDevices) -> None:
        """Perform an action from the clock, unless the claim changed meanwhile."""
        self._preparing.discard(what.uid)
        claim = self._cluster.get(ResourceClaim, what.claim)
        if claim is not None and claim.uid == what.uid and drivers.pending(claim):
            at = timestamp(self._clock.now)
            self._cluster.write(drivers.prepared(claim, at, fails=what.fails))

    def _observe(self, observation: Observation) -> None:
        match observation:
            case Deleted(obj=Node() as node):
                self._withdraw(node.name)
            case Added(obj=Node() as node):
                for each in self._withdrawn.pop(node.name, ()):
                    self._cluster.create(each, self._clock.now)
            case Added(obj=ResourceClaim() as claim) | Updated(obj=ResourceClaim() as claim):
                self._observe_claim(claim)

    def _withdraw(self, node: str) -> None:
        found = [
            each for each in self._cluster.all(ResourceSlice) if drivers.is_published_by(each, node)
        ]
        for each in found:
            self._cluster.remove(each)
        if found:
            self._withdrawn[node] = found

    def _observe_claim(self, claim: ResourceClaim) -> None:
        if claim.uid in self._preparing or not drivers.pending(claim):
            return
        fault = self._fault_plan.preparing(self._clock.now)
        self._preparing.add(claim.uid)
        what = PrepareDevices(claim.key, claim.uid, fault.fails)
        self._clock.in_(drivers.PREPARE_SECONDS + fault.seconds, what)
