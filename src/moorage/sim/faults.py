"""Seeded trouble that combines: lost, late, doubled, stale; failed, unknown; restarts; two leaders.

`Faults` says how often what goes wrong, `Trouble` decides each case from a random source of its
own. So the scheduler's dice fall as they would without trouble, and a seed tells the whole story.
Everything ends: after `until_seconds` the world behaves, and what was lost is found again.
"""

import math
from random import Random

from msgspec import Struct

from moorage.framework.effects import (
    BindPod,
    DeletePod,
    EmitEvent,
    LookUpPod,
    PatchClaim,
    PatchPodStatus,
    PatchVolume,
    Request,
)

CONFLICT = "Operation cannot be fulfilled: the object has been modified"
REFUSED = "the server is currently unable to handle the request"
LOST = "the connection was lost before an answer came"


class Faults(Struct, frozen=True, kw_only=True):
    """How often what goes wrong, as probabilities, and how long things take at the most."""

    until_seconds: float = math.inf
    # What is asked of the API server
    bind_fails: float = 0.0
    bind_conflicts: float = 0.0
    bind_unknown: float = 0.0
    patch_fails: float = 0.0
    event_lost: float = 0.0
    delete_fails: float = 0.0
    look_up_fails: float = 0.0
    volume_write_fails: float = 0.0
    volume_write_unknown: float = 0.0
    # What the volume controller does
    provision_fails: float = 0.0
    provision_hangs: float = 0.0
    provision_seconds: float = 0.0
    answer_seconds: float = 0.0
    # What the scheduler is told
    late_seconds: float = 0.0
    duplicated: float = 0.0
    stale: float = 0.0
    watch_lost: float = 0.0
    relist_seconds: float = 0.0
    # The scheduler itself
    cycle_seconds: float = 0.0
    restarts: int = 0
    # How long a scheduler that was replaced goes on beside its successor.
    overlap_seconds: float = 0.0

    @classmethod
    def none(cls) -> "Faults":
        """A world that behaves."""
        return cls()

    @classmethod
    def some(cls, seed: int) -> "Faults":
        """A random mixture: about half of the troubles, each now rare, now frequent."""

        def draw(name: str) -> Random:
            # A die for each, so that a new trouble does not change what an old seed means.
            return Random(f"{name} {seed}")

        def perhaps(name: str, most: float) -> float:
            die = draw(name)
            return round(die.uniform(0, most), 3) if die.random() < 0.5 else 0.0

        # Now and then news is so late that a binding is looked up before it is confirmed.
        latest = draw("latest").choice((6.0, 6.0, 90.0))
        return cls(
            until_seconds=40.0,
            bind_fails=perhaps("bind_fails", 0.4),
            bind_conflicts=perhaps("bind_conflicts", 0.3),
            bind_unknown=perhaps("bind_unknown", 0.4),
            patch_fails=perhaps("patch_fails", 0.6),
            event_lost=perhaps("event_lost", 0.6),
            delete_fails=perhaps("delete_fails", 0.4),
            look_up_fails=perhaps("look_up_fails", 0.5),
            volume_write_fails=perhaps("volume_write_fails", 0.4),
            volume_write_unknown=perhaps("volume_write_unknown", 0.3),
            provision_fails=perhaps("provision_fails", 0.5),
            provision_hangs=perhaps("provision_hangs", 0.3),
            provision_seconds=perhaps("provision_seconds", 20.0),
            answer_seconds=perhaps("answer_seconds", 6.0),
            late_seconds=perhaps("late_seconds", latest),
            duplicated=perhaps("duplicated", 0.4),
            stale=perhaps("stale", 0.3),
            watch_lost=perhaps("watch_lost", 0.1),
            relist_seconds=perhaps("relist_seconds", 10.0),
            cycle_seconds=perhaps("cycle_seconds", 0.5),
            restarts=draw("restarts").choice((0, 0, 1, 2, 3)),
            overlap_seconds=perhaps("overlap_seconds", 15.0),
        )


class Fate(Struct, frozen=True):
    """What becomes of a request: how long each way takes, whether it is done, what is answered."""

    there_seconds: float = 0.0
    back_seconds: float = 0.0
    carried_out: bool = True
    failed: str = ""
    unknown: str = ""


class Provisioning(Struct, frozen=True):
    """How much longer than usual it takes to make a volume (for ever, if infinite), or whether it
    cannot be made at all."""

    seconds: float = 0.0
    fails: bool = False


GOOD = Fate()


class Trouble:
    """Decides, case by case."""

    def __init__(self, seed: int, faults: Faults) -> None:
        self.faults = faults
        self.is_possible = faults != Faults.none()
        self._random = Random(f"trouble {seed}")

    def is_over(self, now: float) -> bool:
        """Whether the world behaves from here on."""
        return not self.is_possible or now >= self.faults.until_seconds

    @property
    def ends(self) -> bool:
        """Whether the world will behave some day, so that everything has to come right."""
        return not self.is_possible or self.faults.until_seconds < math.inf

    def over_since(self, now: float) -> float:
        """Since when the world has behaved; 0 if it always has, or does not yet."""
        return self.faults.until_seconds if self.is_possible and self.is_over(now) else 0.0

    def fate(self, request: Request, now: float) -> Fate:
        """What becomes of a request."""
        if self.is_over(now):
            return GOOD
        there, back = (
            self._up_to(self.faults.answer_seconds),
            self._up_to(self.faults.answer_seconds),
        )
        failed, unknown = self._answer(request)
        carried_out = not failed and not (unknown and self._happens(0.5))
        return Fate(there, back, carried_out, failed, unknown)

    def _answer(self, request: Request) -> tuple[str, str]:
        """What is answered in place of the truth: a failure, or that nobody knows."""
        faults = self.faults
        match request:
            case BindPod():
                if self._happens(faults.bind_conflicts):
                    return CONFLICT, ""
                if self._happens(faults.bind_unknown):
                    return "", LOST
                fails = faults.bind_fails
            case PatchPodStatus():
                fails = faults.patch_fails
            case EmitEvent():
                fails = faults.event_lost
            case DeletePod():
                fails = faults.delete_fails
            case LookUpPod():
                fails = faults.look_up_fails
            case PatchVolume() | PatchClaim():
                if self._happens(faults.volume_write_unknown):
                    return "", LOST
                fails = faults.volume_write_fails
        return (REFUSED if self._happens(fails) else ""), ""

    def provisioning(self, now: float) -> "Provisioning":
        """What becomes of a volume that is to be made."""
        if self.is_over(now):
            return Provisioning()
        faults = self.faults
        if self._happens(faults.provision_hangs):
            return Provisioning(seconds=max(faults.until_seconds - now, 0.0))
        seconds = self._up_to(faults.provision_seconds)
        return Provisioning(seconds=seconds, fails=self._happens(faults.provision_fails))

    def lateness(self, now: float) -> float:
        """How long news is on its way."""
        return 0.0 if self.is_over(now) else self._up_to(self.faults.late_seconds)

    def is_duplicated(self, now: float) -> bool:
        """Whether news comes twice."""
        return not self.is_over(now) and self._happens(self.faults.duplicated)

    def is_stale(self, now: float) -> bool:
        """Whether an older version comes after news, and the news once more."""
        return not self.is_over(now) and self._happens(self.faults.stale)

    def loses_watch(self, now: float) -> bool:
        """Whether the watch breaks before this news, and everything up to a re-list is missed."""
        return not self.is_over(now) and self._happens(self.faults.watch_lost)

    def relist_after(self) -> float:
        """How long it takes until a broken watch is mended."""
        return self._up_to(self.faults.relist_seconds)

    def thinking(self, now: float) -> float:
        """How long a scheduling cycle takes."""
        return 0.0 if self.is_over(now) else self._up_to(self.faults.cycle_seconds)

    def restarts(self) -> list[float]:
        """When a scheduler is replaced, soonest first."""
        faults = self.faults
        most = min(faults.until_seconds, 3600.0)
        return sorted(self._random.uniform(0, most) for _ in range(faults.restarts))

    def overlap(self) -> float:
        """How long the replaced scheduler does not notice."""
        return self._up_to(self.faults.overlap_seconds)

    def still_lands(self) -> bool:
        """Whether what a stopped scheduler had sent off still reaches the API server."""
        return self._happens(0.5)

    def _happens(self, probability: float) -> bool:
        return probability > 0 and self._random.random() < probability

    def _up_to(self, seconds: float) -> float:
        # Most things are quick; a few take all the time they may.
        return round(seconds * self._random.random() ** 3, 3) if seconds > 0 else 0.0
