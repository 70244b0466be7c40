"""Seeded faults: lost, late, duplicate and stale observations; failed requests; restarts.

`Faults` has probabilities and durations, `FaultPlan` decides each case from a random source of its
own, so the scheduler's random choices are the same with and without faults. After `until_seconds`
there are no more faults, and broken watches are repaired.
"""

import math
from random import Random

from msgspec import Struct

from moorage.api import server_requests

CONFLICT = "Operation cannot be fulfilled: the object has been modified"
REFUSED = "the server is currently unable to handle the request"
LOST = "the connection was lost before an answer came"


class Faults(Struct, frozen=True, kw_only=True):
    """Probabilities of faults, and the longest durations."""

    until_seconds: float = math.inf
    # Requests to the API server
    bind_fails: float = 0.0
    bind_conflicts: float = 0.0
    bind_unknown: float = 0.0
    patch_fails: float = 0.0
    event_lost: float = 0.0
    delete_fails: float = 0.0
    look_up_fails: float = 0.0
    volume_write_fails: float = 0.0
    volume_write_unknown: float = 0.0
    device_write_fails: float = 0.0
    device_write_unknown: float = 0.0
    # The volume controller
    provision_fails: float = 0.0
    provision_hangs: float = 0.0
    provision_seconds: float = 0.0
    # Device drivers that have to meet binding conditions
    prepare_fails: float = 0.0
    prepare_seconds: float = 0.0
    answer_seconds: float = 0.0
    # Observations
    late_seconds: float = 0.0
    duplicated: float = 0.0
    stale: float = 0.0
    watch_lost: float = 0.0
    relist_seconds: float = 0.0
    # The scheduler itself
    cycle_seconds: float = 0.0
    restarts: int = 0
    # How long a scheduler that was replaced goes on while its successor runs.
    overlap_seconds: float = 0.0


class FaultDecision(Struct, frozen=True):
    """How a request ends: duration of each way, whether it is performed, and the response."""

    there_seconds: float = 0.0
    back_seconds: float = 0.0
    performed: bool = True
    failed: str = ""
    unknown: str = ""


class ProvisioningFault(Struct, frozen=True):
    """The additional time to provision a volume or prepare a device, or whether it fails."""

    seconds: float = 0.0
    fails: bool = False


NO_FAULT = FaultDecision()


class FaultPlan:
    """Decides each case."""

    def __init__(self, seed: int, faults: Faults) -> None:
        self.faults = faults
        self.is_enabled = faults != Faults()
        self._random = Random(f"trouble {seed}")

    def is_over(self, now: float) -> bool:
        """Whether there are no faults from now on."""
        return not self.is_enabled or now >= self.faults.until_seconds

    @property
    def ends(self) -> bool:
        """Whether faults end at some time, so that the cluster has to converge."""
        return not self.is_enabled or self.faults.until_seconds < math.inf

    def over_since(self, now: float) -> float:
        """When faults ended; 0 if there were none, or they have not ended."""
        return self.faults.until_seconds if self.is_enabled and self.is_over(now) else 0.0

    def decide(self, request: server_requests.Request, now: float) -> FaultDecision:
        """How a request ends."""
        if self.is_over(now):
            return NO_FAULT
        longest = self.faults.answer_seconds
        there, back = self._up_to(longest), self._up_to(longest)
        failed, unknown = self._response(request)
        performed = not failed and not (unknown and self._happens(0.5))
        return FaultDecision(there, back, performed, failed, unknown)

    def _response(self, request: server_requests.Request) -> tuple[str, str]:
        """The faulty response: a failure, or an unknown outcome."""
        faults = self.faults
        match request:
            case server_requests.BindPod():
                if self._happens(faults.bind_conflicts):
                    return CONFLICT, ""
                if self._happens(faults.bind_unknown):
                    return "", LOST
                fails = faults.bind_fails
            case server_requests.PatchPodStatus() | server_requests.PatchPodGroupStatus():
                fails = faults.patch_fails
            case server_requests.EmitEvent():
                fails = faults.event_lost
            case server_requests.DeletePod():
                fails = faults.delete_fails
            case server_requests.LookUpPod():
                fails = faults.look_up_fails
            case server_requests.PatchVolume() | server_requests.PatchClaim():
                if self._happens(faults.volume_write_unknown):
                    return "", LOST
                fails = faults.volume_write_fails
            case _:
                if self._happens(faults.device_write_unknown):
                    return "", LOST
                fails = faults.device_write_fails
        return (REFUSED if self._happens(fails) else ""), ""

    def provisioning(self, now: float) -> ProvisioningFault:
        """How the provisioning of a volume ends."""
        if self.is_over(now):
            return ProvisioningFault()
        faults = self.faults
        if self._happens(faults.provision_hangs):
            return ProvisioningFault(seconds=max(faults.until_seconds - now, 0.0))
        seconds = self._up_to(faults.provision_seconds)
        return ProvisioningFault(seconds=seconds, fails=self._happens(faults.provision_fails))

    def preparing(self, now: float) -> ProvisioningFault:
        """How the preparation of devices ends."""
        if self.is_over(now):
            return ProvisioningFault()
        seconds = self._up_to(self.faults.prepare_seconds)
        return ProvisioningFault(seconds=seconds, fails=self._happens(self.faults.prepare_fails))

    def delay(self, now: float) -> float:
        """How long an observation is in transit."""
        return 0.0 if self.is_over(now) else self._up_to(self.faults.late_seconds)

    def is_duplicated(self, now: float) -> bool:
        """Whether an observation arrives twice."""
        return not self.is_over(now) and self._happens(self.faults.duplicated)

    def is_stale(self, now: float) -> bool:
        """Whether an older version follows an observation, and then the observation again."""
        return not self.is_over(now) and self._happens(self.faults.stale)

    def breaks_watch(self, now: float) -> bool:
        """Whether the watch breaks: everything up to the next list is lost."""
        return not self.is_over(now) and self._happens(self.faults.watch_lost)

    def relist_after(self) -> float:
        """How long it takes to repair a broken watch."""
        return self._up_to(self.faults.relist_seconds)

    def cycle_duration(self, now: float) -> float:
        """How long a scheduling cycle takes."""
        return 0.0 if self.is_over(now) else self._up_to(self.faults.cycle_seconds)

    def restarts(self) -> list[float]:
        """When a scheduler is replaced, earliest first."""
        faults = self.faults
        most = min(faults.until_seconds, 3600.0)
        return sorted(self._random.uniform(0, most) for _ in range(faults.restarts))

    def overlap(self) -> float:
        """How long a replaced scheduler goes on."""
        return self._up_to(self.faults.overlap_seconds)

    def still_arrives(self) -> bool:
        """Whether a request of a stopped scheduler still reaches the API server."""
        return self._happens(0.5)

    def _happens(self, probability: float) -> bool:
        return probability > 0 and self._random.random() < probability

    def _up_to(self, seconds: float) -> float:
        # Most durations are short, a few are close to the maximum.
        return round(seconds * self._random.random() ** 3, 3) if seconds > 0 else 0.0
