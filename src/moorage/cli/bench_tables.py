"""Benchmark figures on a terminal."""

from statistics import median

from rich.table import Table
from rich.text import Text

from moorage.api import texts
from moorage.bench.measuring import ShapeMeasurement, describe_machine
from moorage.bench.plugin_cost import Cost
from moorage.cli import output
from moorage.cli.output import ConsolePage


def show(measured: list[ShapeMeasurement]) -> None:
    """Print the figures, and what they were taken on."""
    page = ConsolePage()
    first = measured[0]
    nodes, pods = texts.count(first.nodes, "node"), texts.count(first.initial, "pod")
    runs = texts.count(len(first.runs), "run")
    page.put(Text(f"{nodes} with {pods}; the median of {runs}; every node is evaluated."))
    page.section()
    page.put(_figures(measured))
    for each in measured:
        if each.against_without is not None:
            ratio = f"{each.against_without:.2f} of the rate without the waiting pods"
            page.note(f"{each.shape.name}: {ratio}")
    page.section()
    facts = describe_machine()
    page.note(f"{facts['processor']}, {texts.count(int(facts['cores']), 'core')}")
    page.note(f"{facts['platform']}, {facts['python']}, NumPy {facts['numpy']}")
    seconds = median(seconds for each in measured for seconds in each.calibrations)
    page.note(
        f"relative: pods in the CPU time of a fixed loop, {1000 * seconds:.1f} ms here; "
        "for comparing machines"
    )


def _figures(measured: list[ShapeMeasurement]) -> Table:
    heads = ("pods", "pods/s", "min", "max", "us/pod", "us CPU", "relative")
    table = output.table("shape", numbers=heads)
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


def show_costs(costs: list[Cost], plugin: str, nodes: int) -> None:
    """Print what a plugin costs per pod."""
    page = ConsolePage()
    runs = texts.count(len(costs[0].with_it), "pair")
    page.put(Text(f"{plugin} on {texts.count(nodes, 'node')}; CPU time, the median of {runs}."))
    page.section()
    heads = ("pods", "bound", "us/pod without", "with", "plugin", "times")
    table = output.table("shape", numbers=heads)
    for cost in costs:
        table.add_row(
            cost.shape.name,
            f"{cost.with_it[0].pods:,}",
            f"{cost.bound:,}",
            f"{cost.microseconds_without:,.1f}",
            f"{cost.microseconds_with:,.1f}",
            Text(f"{cost.microseconds:,.1f}", output.HEAD),
            f"{cost.microseconds_with / cost.microseconds_without:,.2f}",
        )
    page.put(table)
    if any(cost.bound != cost.without[0].bound for cost in costs):
        page.note("With the plugin not as many pods were bound; a refusal costs what it costs.")
