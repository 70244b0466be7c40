"""`moorage simulate`: schedule everything that is pending, in virtual time."""

import click

from moorage.cli import options, profiling, questions, reports, sweeps
from moorage.cli.questions import Questions

STILL_PENDING = 1


@click.group(
    cls=Questions,
    invoke_without_command=True,
    short_help="Schedule all pending pods, and say who went where.",
)
@options.optional_files
@options.configuration
@options.seed
@click.option(
    "--until",
    type=options.Number(min=0),
    metavar="SECONDS",
    help="Stop at this moment of virtual time. Without it: when nothing is left to do.",
)
@options.output(*options.OUTPUTS)
@options.everything("List every node, and every pod by name.")
@click.option(
    "--fail-on-pending",
    is_flag=True,
    help="Exit with 1 if any pod is left without a node; gated pods count.",
)
@click.option(
    "--profile",
    "shows_profile",
    is_flag=True,
    help="Also say where the time went, plugin by plugin.",
)
@options.record
@reports.options
@sweeps.sweeping
@click.pass_context
def simulate(
    context: click.Context,
    paths: tuple[str, ...],
    config_file: str | None,
    seed: int,
    until: float | None,
    output: str,
    record_file: str | None,
    report_file: str | None,
    csv_folder: str | None,
    explained: tuple[str, ...],
    sweep: tuple[str, ...],
    results: str | None,
    on: str,
    workers: int | None,
    *,
    show_all: bool,
    fail_on_pending: bool,
    shows_profile: bool,
) -> None:
    """Schedule all pending pods in a cluster in memory, and say who went where.

    Time is virtual and starts at 0: pods start a second after they are bound, back-offs pass at
    once, and a pod with the annotation moorage.dev/run-seconds ends after that time. The same
    input and the same seed give the same outcome.
    """
    if questions.check(context):
        return
    from moorage import Simulation
    from moorage.cli import documents, inputs
    from moorage.cli.outcome import Outcome
    from moorage.cli.progress import Progress

    manifest = inputs.cluster(paths)
    if sweep:
        sweeps.check_alone(record_file)
        if report_file is not None or csv_folder is not None:
            raise click.UsageError("--report and --csv tell of one run; a sweep is many")
        if shows_profile:
            raise click.UsageError("--profile is of one run; a sweep is many")
        from moorage.api import config
        from moorage.sweeping.run import Run

        task = Run(tuple(manifest.everything), config.load(config_file), seed, until)
        answer = sweeps.run(task, sweep, results, on, workers)
        sweeps.show(answer, manifest.skipped, output, show_all=show_all)
        pending = any(run.summary["pending"] for run in answer.runs)
        context.exit(STILL_PENDING if fail_on_pending and pending else 0)
    if results is not None:
        raise click.UsageError("--results belongs to --sweep")
    with Progress("scheduling") as progress:
        simulation = Simulation(
            manifest.everything,
            config_file,
            seed,
            trace=record_file is not None,
            on_progress=progress.update,
        )
        before = simulation.placements
        spent = profiling.run(simulation, until) if shows_profile else None
        if spent is None:
            simulation.run(until)
    if record_file is not None:
        from moorage.planning import recording

        recording.write(record_file, simulation)
    reports.write(
        simulation,
        title=", ".join(paths),
        seed=seed,
        config=config_file,
        report_file=report_file,
        csv_folder=csv_folder,
        explained=explained,
    )
    outcome = Outcome.of(simulation, before)
    if output == "table":
        from moorage.cli import simulate_tables

        simulate_tables.show(outcome, manifest.skipped, show_all=show_all)
        if spent is not None:
            profiling.show(spent)
    else:
        profile = {} if spent is None else {"profile": spent.to_dict()}
        documents.write({**outcome.to_dict(), **profile}, output)
    context.exit(STILL_PENDING if fail_on_pending and outcome.pending else 0)
