"""FaultPlan: what goes wrong on the network, from one seed, up to a moment.

A seed draws a few kinds of faults with a share of requests each, and some outages: during one, all
requests of a verb, of a kind of object, or of a replica fail in the same way.

    unsent        no connection                      busy          429 with Retry-After
    lost          cut before the server performs it  error         500, 503 or 504, not performed
    lost_after    cut after the server performed it  error_after   the same, but performed
    hang          no answer, not performed           hang_after    no answer, but performed
    slow          arrives late, and the answer too   late          the answer is late (leases only)

    of a watch    gone (410), cut (perhaps within a line), stall (half-open until keep-alive
                  notices), garble (a line is no JSON), repeat (the same events again), replay
                  (from an earlier version), hold (events are held back; bookmarks go on)
    of a list     stale (an earlier version)
"""

from typing import NamedTuple

WRITE_FAULTS = (
    "unsent", "lost", "lost_after", "hang", "hang_after", "busy", "error", "error_after", "slow",
)  # fmt: skip
WATCH_FAULTS = (
    "unsent", "busy", "error", "gone", "cut", "stall", "garble", "slow", "repeat", "replay",
)  # fmt: skip
FAULTS = tuple(dict.fromkeys((*WRITE_FAULTS, *WATCH_FAULTS, "stale")))
OUTAGES = ("unsent", "lost", "lost_after", "hang", "busy", "error", "error_after", "gone", "cut")
VERBS = ("list", "watch", "get", "create", "update", "patch", "delete", "bind")
PLURALS = ("pods", "nodes", "leases", "events")
CLAIM_PLURALS = ("persistentvolumeclaims", "persistentvolumes", "resourceclaims", "resourceslices")

# A request that is sent arrives within this time or never. It has to be shorter than the time
# between the renew deadline of a leader and the end of its lease: as with kube-scheduler, a request
# that is longer on its way could arrive after the next leader has listed.
LONGEST_SECONDS = 2.0
LONGEST_ANSWER_SECONDS = 12.0
LATE_SECONDS = (2.0, 4.5)  # Before the client gives up.
USUAL_SECONDS = 0.01


class Outage(NamedTuple):
    fault: str
    begins_at: float
    ends_at: float
    verb: str = ""
    plural: str = ""
    process: str = ""

    def covers(self, now, process, verb, plural):
        return (
            self.begins_at <= now < self.ends_at
            and self.verb in ("", verb)
            and self.plural in ("", plural)
            and self.process in ("", process)
        )


class FaultPlan:
    def __init__(self, random, until, processes=()):
        self.random = random
        self.until = until
        chosen = random.sample(FAULTS, random.randint(0, 8))
        # A stale list lets a scheduler believe that used room is free: few seeds have them.
        self.has_stale_lists = random.random() < 0.15
        if not self.has_stale_lists and "stale" in chosen:
            chosen.remove("stale")
        self.shares = {fault: random.choice((0.01, 0.05, 0.2)) for fault in chosen}
        if self.has_stale_lists:
            self.shares["stale"] = 0.3
        self.outages = [self._outage(processes) for _ in range(random.randint(0, 4))]

    def _outage(self, processes):
        draw = self.random
        begins_at = draw.uniform(0, self.until)
        ends_at = begins_at + draw.choice((2.0, 8.0, 25.0))
        only = draw.choice(
            ({}, {"verb": draw.choice(VERBS)}, {"plural": draw.choice(PLURALS)})
            + (({"process": draw.choice(processes)},) if processes else ())
        )
        return Outage(draw.choice(OUTAGES), begins_at, min(ends_at, self.until), **only)

    def add_lease_outage(self, draw):
        """Late answers to the requests for leases, then none at all."""
        begins_at = draw.uniform(5.0, self.until - 25.0)
        hangs_at = begins_at + draw.uniform(2.0, 8.0)
        self.outages += [
            Outage("late", begins_at, hangs_at, plural="leases"),
            Outage("hang", hangs_at, hangs_at + 16.0, plural="leases"),
        ]

    def add_claim_outage(self, draw):
        """No request for one of the kinds of volumes and devices succeeds."""
        begins_at = draw.uniform(0, self.until)
        ends_at = min(begins_at + draw.choice((2.0, 8.0, 25.0)), self.until)
        fault, plural = draw.choice(OUTAGES), draw.choice(CLAIM_PLURALS)
        self.outages.append(Outage(fault, begins_at, ends_at, plural=plural))

    def add_stale_lists(self, draw):
        """Watches of pods expire shortly before the end of the faults, and lists are stale then.

        After any later list everything would be known again. Returns the moment.
        """
        begins_at = self.until - draw.uniform(2.0, 8.0)
        self.outages += [
            Outage("gone", begins_at, begins_at + 2.0, verb="watch", plural="pods"),
            Outage("stale", begins_at, self.until, verb="list", plural="pods"),
        ]
        return begins_at

    def decide(self, now, process, verb, plural):
        """The fault of a request, of a new watch, or of some events of a watch."""
        if now >= self.until:
            return ""
        possible = (*WATCH_FAULTS, "hold") if verb == "watch" else (*WRITE_FAULTS, "late")
        if verb == "list":
            possible = (*possible, "stale")
        for outage in self.outages:
            if outage.covers(now, process, verb, plural) and outage.fault in possible:
                return outage.fault
        for fault, share in self.shares.items():
            if fault in possible and self.random.random() < share:
                return fault
        return ""

    def there_seconds(self, fault):
        return self.random.uniform(0, LONGEST_SECONDS if fault == "slow" else USUAL_SECONDS)

    def back_seconds(self, fault):
        if fault == "late":
            return self.random.uniform(*LATE_SECONDS)
        return self.random.uniform(0, LONGEST_ANSWER_SECONDS if fault == "slow" else USUAL_SECONDS)
