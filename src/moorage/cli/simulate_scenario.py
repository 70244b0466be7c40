"""`moorage simulate scenario`: a cluster's day as a file, played in virtual time."""

from collections import Counter

import click

from moorage.cli import options, reports, sweeps

STILL_PENDING = 1


@click.command(short_help="Play a scenario: arrivals, scaling, drains, failures.")
@click.argument("file")
@click.option(
    "-f",
    "--filename",
    "paths",
    metavar="PATH",
    multiple=True,
    help="More objects that are there at the start: a file, a folder, or - for standard input.",
)
@options.configuration
@click.option("--seed", type=int, help="Instead of the scenario's own.")
@options.output(*options.OUTPUTS)
@reports.options
@click.option(
    "--fail-on-pending", is_flag=True, help="Exit with 1 if any pod has no node at the end."
)
@options.record
@sweeps.sweeping
@click.pass_context
def scenario(
    context: click.Context,
    file: str,
    paths: tuple[str, ...],
    config_file: str | None,
    seed: int | None,
    output: str,
    report_file: str | None,
    csv_folder: str | None,
    explained: tuple[str, ...],
    record_file: str | None,
    sweep: tuple[str, ...],
    results: str | None,
    on: str,
    workers: int | None,
    *,
    fail_on_pending: bool,
) -> None:
    """Play the scenario in FILE, and tell how full the nodes were, who waited, and for how long.

    The file has one document of kind Scenario (apiVersion moorage.dev/v1) with arrivals, events, a
    duration and a seed; its other documents are objects that are there at the start. The same
    scenario and seed give the same outcome, byte for byte.
    """
    from moorage.api import manifests
    from moorage.cli import played
    from moorage.scenarios import reading

    plan = reading.load(file)
    objects = manifests.load(paths).everything if paths else []
    if sweep:
        sweeps.check_alone(record_file)
        answer = sweeps.play(plan, objects, config_file, seed, sweep, results, on, workers)
        sweeps.show(answer, Counter(), output, show_all=True)
        pending = any(run.summary["pending"] for run in answer.runs)
        context.exit(STILL_PENDING if fail_on_pending and pending else 0)
    simulation = played.play(plan, objects, config_file, seed, record_file)
    result = simulation.result
    used_seed = plan.seed if seed is None else seed
    reports.write(
        simulation,
        title=plan.name,
        seed=used_seed,
        config=config_file,
        report_file=report_file,
        csv_folder=csv_folder,
        explained=explained,
        result=result,
    )
    played.show(result, plan.name, used_seed, output)
    context.exit(STILL_PENDING if fail_on_pending and result.pending else 0)
