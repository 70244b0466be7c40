"""Benchmark figures on a terminal."""

from statistics import median

from rich.table import Table
from rich.text import Text

from moorage.bench import machine
from moorage.bench.measuring import Measured
from moorage.cli import output
from moorage.cli.output import Page
from moorage.explaining import words


def show(measured: list[Measured]) -> None:
    """Print the figures, and what they were taken on."""
    page = Page()
    page.put(Text(_setting(measured)))
    page.section()
    page.put(_figures(measured))
    page.section()
    facts = machine.describe()
    page.note(f"{facts['processor']}, {words.count(int(facts['cores']), 'core')}")
    page.note(f"{facts['platform']}, {facts['python']}, NumPy {facts['numpy']}")
    seconds = median(seconds for each in measured for seconds in each.calibrations)
    page.note(
        f"relative: pods in the CPU time of a fixed loop, {1000 * seconds:.1f} ms here; "
        "for comparing machines"
    )


def _setting(measured: list[Measured]) -> str:
    first = measured[0]
    runs = words.count(len(first.runs), "run")
    return (
        f"{words.count(first.nodes, 'node')}, {words.count(first.initial, 'pod')} on them before; "
        f"the median of {runs}, every node looked at."
    )


def _figures(measured: list[Measured]) -> Table:
    table = output.table()
    table.add_column("shape")
    for head in ("pods", "pods/s", "min", "max", "us/pod", "us CPU", "relative"):
        table.add_column(head, justify="right", no_wrap=True)
    for each in measured:
        speeds = [run.pods_per_second for run in each.runs]
        table.add_row(
            each.shape.name,
            f"{each.pods:,}",
            Text(f"{each.pods_per_second:,.0f}", output.HEAD),
            f"{min(speeds):,.0f}",
            f"{max(speeds):,.0f}",
            f"{each.wall_microseconds:,.1f}",
            f"{each.cpu_microseconds:,.1f}",
            f"{each.pods_per_calibration:,.1f}",
        )
    return table
