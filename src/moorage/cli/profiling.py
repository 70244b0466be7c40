"""`moorage simulate --profile`: where the time of a run went."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moorage.metrics.stopwatches import Stopwatches
    from moorage.sim.run import Simulation

# Rows with less than this share of the time are summed up.
SMALLEST_SHARE = 0.002


@dataclass(frozen=True, slots=True)
class TimeProfile:
    """Seconds of a whole run, and of its parts."""

    seconds: float
    watches: "Stopwatches"

    @property
    def rest(self) -> float:
        """What no watch has seen: the simulated cluster itself."""
        parts = (*self.watches.stages.values(), *self.watches.plugins.values())
        return max(self.seconds - sum(spent.seconds for spent in parts), 0.0)

    def rows(self) -> list[tuple[str, str, int, float]]:
        """Who, what, calls and seconds, the most expensive first."""
        watches = self.watches
        found = [(name, what, s.calls, s.seconds) for (name, what), s in watches.plugins.items()]
        found += [("", what, s.calls, s.seconds) for what, s in watches.stages.items()]
        found.append(("", "the cluster around the scheduler", 0, self.rest))
        return sorted((row for row in found if row[2] or row[3]), key=lambda row: -row[3])

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {
            "seconds": round(self.seconds, 6),
            "parts": [
                {"plugin": plugin, "what": what, "calls": calls, "seconds": round(seconds, 6)}
                for plugin, what, calls, seconds in self.rows()
            ],
        }


def run(simulation: "Simulation", until: float | None) -> TimeProfile:
    """Run a simulation with a stopwatch in every hand."""
    import time

    from moorage.metrics.stopwatches import Stopwatches

    watches = Stopwatches(time.perf_counter)
    simulation.measure(watches)
    began = time.perf_counter()
    simulation.run(until)
    return TimeProfile(time.perf_counter() - began, watches)


def show(profile: TimeProfile) -> None:
    """Print the parts, the most expensive first."""
    from rich.text import Text

    from moorage.cli import output
    from moorage.cli.output import ConsolePage

    page = ConsolePage()
    page.put("")
    page.put(Text(f"Where {1000 * profile.seconds:,.0f} ms went", style=output.HEAD))
    table = output.table("plugin", "what", numbers=("calls", "ms", "us/call", "share"))
    rows = profile.rows()
    shown = [row for row in rows if row[3] >= SMALLEST_SHARE * profile.seconds]
    for plugin, what, calls, seconds in shown:
        table.add_row(
            plugin or "-",
            what,
            f"{calls:,}" if calls else "",
            f"{1000 * seconds:,.1f}",
            f"{1e6 * seconds / calls:,.1f}" if calls else "",
            f"{seconds / profile.seconds:.1%}",
        )
    page.put(table)
    if len(shown) < len(rows):
        less = sum(row[3] for row in rows[len(shown) :])
        page.note(f"and {len(rows) - len(shown)} more with {1000 * less:,.1f} ms together")
