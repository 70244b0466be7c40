"""Random mixtures of faults, for simulations of tests and tools."""

from random import Random

from moorage.sim.faults import Faults

# The highest probability of each fault, or its longest duration in seconds.
MOST = {
    "bind_fails": 0.4,
    "bind_conflicts": 0.3,
    "bind_unknown": 0.4,
    "patch_fails": 0.6,
    "event_lost": 0.6,
    "delete_fails": 0.4,
    "look_up_fails": 0.5,
    "volume_write_fails": 0.4,
    "volume_write_unknown": 0.3,
    "provision_fails": 0.5,
    "provision_hangs": 0.3,
    "provision_seconds": 20.0,
    "device_write_fails": 0.4,
    "device_write_unknown": 0.3,
    "prepare_fails": 0.5,
    "prepare_seconds": 20.0,
    "answer_seconds": 6.0,
    "duplicated": 0.4,
    "stale": 0.3,
    "watch_lost": 0.1,
    "relist_seconds": 10.0,
    "cycle_seconds": 0.5,
    "overlap_seconds": 15.0,
}


def random_faults(seed: int) -> Faults:
    """A random mixture: about half of the faults, each with a random probability."""

    def draw(name: str) -> Random:
        # A source for each, so that a new fault does not change what an old seed means.
        return Random(f"{name} {seed}")

    def perhaps(name: str, most: float) -> float:
        die = draw(name)
        return round(die.uniform(0, most), 3) if die.random() < 0.5 else 0.0

    # Some observations are so late that a binding is looked up before it is confirmed.
    latest = draw("latest").choice((6.0, 6.0, 90.0))
    return Faults(
        until_seconds=40.0,
        restarts=draw("restarts").choice((0, 0, 1, 2, 3)),
        late_seconds=perhaps("late_seconds", latest),
        **{name: perhaps(name, most) for name, most in MOST.items()},
    )
