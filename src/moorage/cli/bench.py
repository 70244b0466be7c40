"""`moorage bench`: how many pods per second."""

from typing import TYPE_CHECKING

import click

from moorage.cli import options

if TYPE_CHECKING:
    from moorage.bench.measuring import Size
    from moorage.bench.shapes import Shape


@click.command(short_help="Measure how many pods per second are decided on.")
@click.argument("names", metavar="[SHAPE]...", nargs=-1)
@click.option(
    "--nodes",
    type=click.IntRange(1, 1_000_000),
    default=5000,
    show_default=True,
    help="Nodes.",
)
@click.option(
    "--pods", type=click.IntRange(min=1), help="Pods to time. Each shape has a number of its own."
)
@click.option(
    "--initial",
    type=click.IntRange(min=0),
    help="Pods that run before the clock starts; by default one for every five nodes, up to 1000.",
)
@click.option(
    "--repeat", type=click.IntRange(min=1), default=3, show_default=True, help="Runs per shape."
)
@options.output("table", "json")
@click.option("--list", "only_list", is_flag=True, help="List the shapes and stop.")
@click.option("--profile", is_flag=True, help="Print where one run of each shape spends its time.")
@click.option(
    "--plugin", metavar="FILE.py:CLASS", help="Measure what this plugin costs per pod, if enabled."
)
@click.option(
    "--compare", metavar="COMMIT", help="Measure this checkout and that commit of it, in turn."
)
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
    """Measure how many pods per second the scheduler decides on, shape by shape.

    The decision path alone is timed: no API server, no simulation, every node looked at. The clock
    runs from the first decision until every pod is bound (or refused, in the shape that is about
    that), and includes for each pod the answer that its binding is done and the observation that
    confirms it. Making the objects and observing them for the first time is not timed, and the
    garbage collector does not look at what was there before.

    Beside every run a fixed loop of Python and NumPy is timed. Pods per that time are comparable
    between machines, and on a noisy one.
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
    elif plugin is not None:
        _plugin(shapes, size, repeat, plugin, output)
    elif compare is not None:
        _compare(shapes, size, repeat, compare, output)
    else:
        _measure(shapes, size, repeat, output)


def _chosen(names: tuple[str, ...]) -> "list[Shape]":
    from moorage.bench.shapes import SHAPES
    from moorage.errors import InputError

    for name in names:
        if name not in SHAPES:
            raise InputError(f'no shape "{name}"; there is {", ".join(SHAPES)}')
    return [SHAPES[name] for name in names or SHAPES]


def _list() -> None:
    from moorage.bench.shapes import SHAPES

    widest = max(map(len, SHAPES))
    for shape in SHAPES.values():
        click.echo(f"{shape.name:<{widest}}{shape.pods:>7,}  {shape.summary}")


def _profile(shapes: "list[Shape]", size: "Size") -> None:
    from moorage.bench import timing

    for shape in shapes:
        click.echo(f"{shape.name}: {shape.summary}\n\n{timing.profile(size.workload(shape))}\n")


def _measure(shapes: "list[Shape]", size: "Size", repeat: int, output: str) -> None:
    import time

    from moorage.bench import measuring
    from moorage.bench.timing import Clocks
    from moorage.cli import bench_tables, documents
    from moorage.cli.progress import ProgressBar

    clocks = Clocks(time.perf_counter, time.process_time)
    with ProgressBar("measuring") as progress:
        measured = measuring.measure(shapes, size, repeat, clocks, progress.update)
    if output == "json":
        documents.write(measuring.to_dict(measured), output)
    else:
        bench_tables.show(measured)


def _plugin(shapes: "list[Shape]", size: "Size", repeat: int, plugin: str, output: str) -> None:
    import time

    from moorage.bench import plugin_cost
    from moorage.bench.timing import Clocks
    from moorage.cli import bench_tables, documents
    from moorage.cli.progress import ProgressBar

    clocks = Clocks(time.perf_counter, time.process_time)
    with ProgressBar("measuring") as progress:
        costs = plugin_cost.measure(shapes, size, repeat, clocks, plugin, progress.update)
    if output == "json":
        figures = {cost.shape.name: cost.to_dict() for cost in costs}
        documents.write({"plugin": plugin, "nodes": size.nodes, "shapes": figures}, output)
    else:
        bench_tables.show_costs(costs, plugin, size.nodes)


def _compare(shapes: "list[Shape]", size: "Size", repeat: int, commit: str, output: str) -> None:
    from moorage.bench import commits
    from moorage.cli import bench_tables, documents
    from moorage.cli.progress import ProgressBar

    names = [shape.name for shape in shapes]
    with ProgressBar("measuring") as progress:
        compared, absent = commits.compare(commit, names, size, repeat, progress.update)
    if output == "json":
        figures = {each.name: each.to_dict() for each in compared}
        documents.write({"commit": commit, "shapes": figures, "absent": absent}, output)
    else:
        bench_tables.show_compared(compared, absent, commit, size.nodes)
