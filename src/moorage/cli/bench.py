"""`moorage bench`: how many pods per second."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.cli import documents, options
from moorage.cli.progress import ProgressBar
from moorage.errors import InputError

if TYPE_CHECKING:
    from moorage.bench.measuring import Size
    from moorage.bench.shapes import Shape

SOURCES = Path(__file__).resolve().parents[2]


@click.command(short_help="Measure the scheduling throughput in pods per second.")
@click.argument("names", metavar="[SHAPE]...", nargs=-1)
@click.option(
    "--nodes",
    type=click.IntRange(1, 1_000_000),
    default=5000,
    show_default=True,
    help="Number of nodes.",
)
@click.option(
    "--pods",
    type=click.IntRange(1, 10_000_000),
    help="Number of measured pods. Default: depends on the shape.",
)
@click.option(
    "--initial",
    type=click.IntRange(0, 10_000_000),
    help="Pods that run before the measurement; default: one per five nodes, up to 1000.",
)
@click.option(
    "--repeat", type=click.IntRange(1, 1000), default=3, show_default=True, help="Runs per shape."
)
@options.document("table", "json")
@click.option("--list", "only_list", is_flag=True, help="List the shapes and stop.")
@click.option("--profile", is_flag=True, help="Print a profile of one run of each shape.")
@click.option("--plugin", metavar="FILE.py:CLASS", help="Measure the cost of this plugin per pod.")
@click.option("--compare", metavar="COMMIT", help="Measure this checkout and COMMIT alternately.")
def bench(
    names: tuple[str, ...],
    nodes: int,
    pods: int | None,
    initial: int | None,
    repeat: int,
    output: str,
    plugin: str | None,
    compare: str | None,
    *,
    only_list: bool,
    profile: bool,
) -> None:
    """Measure the scheduling throughput of workloads (shapes), in pods per second.

    Only the scheduler is measured: no API server and no simulation; every node is evaluated. The
    measurement starts with the first decision and ends when every pod is bound, or rejected in the
    shape of unschedulable pods. It includes the completion and the confirmation of each binding,
    but not the creation and the first observation of objects.

    A fixed loop of Python and NumPy is measured next to every run. Pods per duration of that loop
    can be compared between machines.
    """
    from moorage.bench.measuring import Size

    if only_list:
        _list()
        return
    if [profile, plugin is not None, compare is not None].count(True) > 1:
        raise click.UsageError("--profile, --plugin and --compare exclude each other")
    shapes, size = _chosen(names), Size(nodes, initial, pods)
    if profile:
        _profile(shapes, size)
    else:
        _measure(shapes, size, repeat, output, plugin, compare)


def _chosen(names: tuple[str, ...]) -> "list[Shape]":
    from moorage.bench.shapes import SHAPES

    chosen: dict[str, Shape] = {}
    for name in names or SHAPES:
        # `gang` stands for `gang-8`, `gang-64` and so on.
        family = {key: each for key, each in SHAPES.items() if key.startswith(f"{name}-")}
        found = {name: SHAPES[name]} if name in SHAPES else family
        if not found:
            raise InputError(f'no shape "{name}"; the shapes are {", ".join(SHAPES)}')
        chosen |= found
    return [*chosen.values()]


def _list() -> None:
    from moorage.bench.shapes import SHAPES

    widest = max(map(len, SHAPES))
    for shape in SHAPES.values():
        click.echo(f"{shape.name:<{widest}}{shape.pods:>7,}  {shape.summary}")


def _profile(shapes: "list[Shape]", size: "Size") -> None:
    from moorage.bench import timing

    for shape in shapes:
        click.echo(f"{shape.name}: {shape.summary}\n\n{timing.profile(size.workload(shape))}\n")


def _measure(
    shapes: "list[Shape]",
    size: "Size",
    repeat: int,
    output: str,
    plugin: str | None,
    compare: str | None,
) -> None:
    """Measure the shapes, or what a plugin costs in them, or this checkout against a commit."""
    import time

    from moorage.bench import measuring, plugin_cost
    from moorage.bench.timing import Clocks
    from moorage.cli import bench_tables

    clocks = Clocks(time.perf_counter, time.process_time)
    show: Callable[[], None]
    with ProgressBar("measuring") as progress:
        if plugin is not None:
            costs = plugin_cost.measure(shapes, size, repeat, clocks, plugin, progress.update)
            figures = {cost.shape.name: cost.to_dict() for cost in costs}
            plain = {"plugin": plugin, "nodes": size.nodes, "shapes": figures}
            show = partial(bench_tables.show_costs, costs, plugin, size.nodes)
        elif compare is not None:
            names = [shape.name for shape in shapes]
            compare_commits = _tool("compare_commits")["compare"]
            plain, show = compare_commits(compare, names, size, repeat, progress.update)
        else:
            measured = measuring.measure(shapes, size, repeat, clocks, progress.update)
            plain = measuring.to_dict(measured)
            show = partial(bench_tables.show, measured)
    if output == "json":
        documents.write(plain, output)
    else:
        show()


def _tool(name: str) -> dict[str, Any]:
    """What a developers' tool of this checkout defines; installed packages have none."""
    import runpy

    from moorage.errors import InputError

    file = SOURCES.parent / "tools" / f"{name}.py"
    if not file.is_file():
        raise InputError(f"{SOURCES} is not in a git checkout; only there commits can be compared")
    return runpy.run_path(str(file))
