"""`moorage simulate trace`: a public trace, played in virtual time."""

import click

from moorage.cli import options, reports


@click.command(short_help="Play a public trace: Alibaba's OpenB, Google's.")
@click.argument("style", type=click.Choice(("openb", "google")))
@click.option("--pods", "pods_file", metavar="FILE", required=True, help="Pods, or task events.")
@click.option("--nodes", "nodes_file", metavar="FILE", help="Nodes, or machine events.")
@click.option(
    "-f",
    "--filename",
    "paths",
    metavar="PATH",
    multiple=True,
    help="More objects that are there at the start, such as nodes instead of --nodes.",
)
@click.option(
    "--largest-cpu",
    metavar="CPUS",
    default="64",
    show_default=True,
    help="What 1.0 stands for in a Google-style trace, whose amounts are shares.",
)
@click.option(
    "--largest-memory",
    metavar="BYTES",
    default="256Gi",
    show_default=True,
    help="The same for memory.",
)
@options.configuration
@options.seed
@options.output(*options.OUTPUTS)
@reports.options
def trace(
    style: str,
    pods_file: str,
    nodes_file: str | None,
    paths: tuple[str, ...],
    largest_cpu: str,
    largest_memory: str,
    config_file: str | None,
    seed: int,
    output: str,
    report_file: str | None,
    csv_folder: str | None,
    explained: tuple[str, ...],
) -> None:
    """Play a trace of STYLE openb or google, and tell what `simulate scenario` tells.

    Pods arrive when the trace says that they were created, and run for as long as they did there;
    where they run is decided here. docs/simulate.md lists the columns.
    """
    from moorage.api import manifests
    from moorage.cli import played
    from moorage.scenarios import google, openb

    if style == "openb":
        plan = openb.load(pods_file, nodes_file, seed=seed)
    else:
        plan = google.load(pods_file, nodes_file, seed=seed, cpu=largest_cpu, memory=largest_memory)
    objects = manifests.load(paths).everything if paths else []
    simulation = played.play(plan, objects, config_file, seed)
    result = simulation.result
    reports.write(
        simulation,
        title=plan.name,
        seed=seed,
        config=config_file,
        report_file=report_file,
        csv_folder=csv_folder,
        explained=explained,
        result=result,
    )
    played.show(result, plan.name, seed, output)
