"""`moorage simulate`, and `simulate scenario` and `simulate trace`: a cluster in virtual time.

The planning questions (`simulate capacity` and others) are in `planning`.
"""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from moorage.cli import documents, inputs, options, price_options, profiling, reports, sweeps
from moorage.cli.price_options import PriceOptions
from moorage.cli.progress import ProgressBar
from moorage.cli.reports import ReportOptions
from moorage.cli.sweeps import SweepOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.api.config import SchedulerConfiguration
    from moorage.explaining import Explanation
    from moorage.planning.prices import ClusterCost
    from moorage.scenarios.plan import ScenarioPlan
    from moorage.sim.run import Simulation
    from moorage.sweeping.run import SweepRun

STILL_PENDING = 1
PLANNING = ("capacity", "drain", "what-if", "add-nodes", "compact", "compare", "replay")
SUBCOMMANDS = {"scenario": "simulate", "trace": "simulate", **dict.fromkeys(PLANNING, "planning")}


class SimulateGroup(options.LazyGroup):
    """A group that also runs without a subcommand."""

    modules: ClassVar = SUBCOMMANDS

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `simulate PATH` as `simulate -f PATH`."""
        return super().parse_args(ctx, self._with_filenames(args))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand; the error says that a path would have been possible, too."""
        if args[0] not in self.modules:
            ctx.fail(f"No such command, file or folder: {args[0]!r}.")
        return super().resolve_command(ctx, args)

    def _with_filenames(self, args: list[str]) -> list[str]:
        values = {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }
        found: list[str] = []
        rest = iter(args)
        for each in rest:
            if each in self.modules:
                return [*found, each, *rest]
            if _is_path(each):
                found.append("-f")
            found.append(each)
            if each in values:
                found += [value] if (value := next(rest, None)) is not None else []
        return found


def _is_path(argument: str) -> bool:
    """Whether an argument is a file rather than an option or a misspelt command."""
    if argument.startswith("-"):
        return argument == "-"
    return "/" in argument or "." in argument or Path(argument).exists()


@click.group(
    cls=SimulateGroup,
    invoke_without_command=True,
    subcommand_metavar="[PATH]... | COMMAND [ARGS]...",
    short_help="Schedule all pending pods of files in virtual time.",
)
@options.optional_files
@options.configuration
@options.seed
@options.until
@options.answer_output
@options.everything("List every node and the name of every pod.")
@click.option(
    "--fail-on-pending",
    is_flag=True,
    help="Exit with code 1 if any pod has no node, or is refused by a quota; gated pods count.",
)
@click.option(
    "--profile",
    "shows_profile",
    is_flag=True,
    help="Also print the time spent in each plugin and stage.",
)
@options.record
@reports.options
@price_options.options
@sweeps.options
@click.pass_context
def simulate(
    context: click.Context,
    paths: tuple[str, ...],
    config_file: str | None,
    seed: int,
    until: float | None,
    output: str,
    record_file: str | None,
    report: ReportOptions,
    prices: PriceOptions,
    sweep: SweepOptions,
    *,
    show_all: bool,
    fail_on_pending: bool,
    shows_profile: bool,
) -> None:
    """Schedule all pending pods in a simulated cluster, and print where each was placed.

    The cluster is read from files: `moorage simulate PATH`, or -f PATH. Time is virtual and
    starts at 0: a pod starts one second after it is bound, backoffs take no real time, and a pod
    with the annotation moorage.dev/run-seconds ends after that time. The same input and seed give
    the same result.
    """
    if _has_subcommand(context):
        return
    from moorage import Simulation

    sweep.check(record=record_file, profile=shows_profile, **report.given, **prices.given)
    config = inputs.configuration(config_file)
    manifest = inputs.cluster(paths)
    if sweep.parameters:
        from moorage.sweeping.run import SweepRun

        task = SweepRun(tuple(manifest.everything), config, seed, until)
        has_pending = _sweep(task, sweep, output, manifest.skipped, show_all=show_all)
        context.exit(STILL_PENDING if fail_on_pending and has_pending else 0)
    price_list = prices.load()
    manifest.origins.clear()  # The objects of a large dump need the memory.
    skipped = manifest.skipped
    with ProgressBar("scheduling") as progress:
        simulation = Simulation(
            manifest,
            config,
            seed,
            trace=record_file is not None,
            on_progress=progress.update,
        )
        del manifest
        price_options.cost(price_list, simulation)  # Prices without a node are refused at once.
        spent = profiling.run(simulation, until) if shows_profile else None
        if spent is None:
            simulation.run(until)
    _record(record_file, simulation)
    result = simulation.result
    cost = price_options.cost(price_list, simulation)
    report.write(simulation, result, cost, title=", ".join(paths), seed=seed, config=config)
    explained = report.answers(simulation, config)
    if output == "table":
        from moorage.cli import result_tables

        result_tables.show_placements(result, skipped, cost, show_all=show_all)
        _show_explanations(explained, show_all=show_all)
        if spent is not None:
            profiling.show(spent)
    else:
        profile = {} if spent is None else {"profile": spent.to_dict()}
        more = {**_plain_cost(cost), **profile, **_plain_explanations(explained)}
        documents.write({**result.to_dict(), **more}, output)
    lacking = result.pending_pods or result.refused
    context.exit(STILL_PENDING if fail_on_pending and lacking else 0)


def _has_subcommand(context: click.Context) -> bool:
    """Whether a subcommand is named; refuses options that stand before it."""
    subcommand = context.invoked_subcommand
    given = [
        option
        for option in context.command.params
        if option.name
        and context.get_parameter_source(option.name) is click.core.ParameterSource.COMMANDLINE
    ]
    if subcommand is not None and given:
        flag = given[0].opts[0]
        raise click.UsageError(
            f"{flag} must follow the command: moorage simulate {subcommand} {flag}"
        )
    if subcommand is None and not context.params["paths"]:
        raise click.UsageError("Missing option '-f' / '--filename'.")
    return subcommand is not None


@click.command(short_help="Run a scenario: arrivals, scaling, drains, failures.")
@click.argument("file")
@options.paths(
    "More objects that exist at the start: a file, a folder, a URL, or - for standard input."
)
@options.configuration
@click.option("--seed", type=int, help="Seed; default: the seed of the scenario.")
@options.answer_output
@reports.options
@price_options.options
@click.option(
    "--fail-on-pending", is_flag=True, help="Exit with code 1 if any pod has no node at the end."
)
@options.record
@sweeps.options
@click.pass_context
def scenario(
    context: click.Context,
    file: str,
    paths: tuple[str, ...],
    config_file: str | None,
    seed: int | None,
    output: str,
    report: ReportOptions,
    prices: PriceOptions,
    record_file: str | None,
    sweep: SweepOptions,
    *,
    fail_on_pending: bool,
) -> None:
    """Run the scenario in FILE; print utilisation, scheduling times, disruptions and pending pods.

    The file has one document of kind Scenario (apiVersion moorage.dev/v1) with arrivals, events, a
    duration and a seed. Its other documents are objects that exist at the start. The same scenario
    and seed give the same result, byte for byte.
    """
    from moorage.scenarios import reading

    sweep.check(record=record_file, **report.given, **prices.given)
    plan = reading.load(file, inputs.validate())
    inputs.remark(plan)
    config = inputs.configuration(config_file)
    used_seed = plan.seed if seed is None else seed
    if sweep.parameters:
        from dataclasses import replace

        from moorage.sweeping.run import SweepRun

        # The objects move from the plan to the run, so that parameters can change them.
        given = inputs.cluster(paths).everything if paths else []
        task = SweepRun(
            (*given, *plan.objects),
            config,
            used_seed,
            plan=replace(plan, objects=()),
        )
        has_pending = _sweep(task, sweep, output, Counter(), show_all=True)
    else:
        has_pending = _play(plan, paths, config, used_seed, output, report, prices, record_file)
    context.exit(STILL_PENDING if fail_on_pending and has_pending else 0)


@click.command(short_help="Run a public trace: Alibaba OpenB or Google.")
@click.argument("style", type=click.Choice(("openb", "google")))
@click.option(
    "--pods",
    "pods_file",
    metavar="FILE",
    required=True,
    help="CSV file of pods, or of task events.",
)
@click.option(
    "--nodes", "nodes_file", metavar="FILE", help="CSV file of nodes, or of machine events."
)
@options.paths("More objects that exist at the start, such as nodes instead of --nodes.")
@click.option(
    "--largest-cpu",
    metavar="CPUS",
    default="64",
    show_default=True,
    help="CPUs of the largest machine of a Google trace. Amounts are fractions of that machine.",
)
@click.option(
    "--largest-memory",
    metavar="BYTES",
    default="256Gi",
    show_default=True,
    help="Memory of the largest machine of a Google trace.",
)
@options.configuration
@options.seed
@options.answer_output
@reports.options
@price_options.options
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
    report: ReportOptions,
    prices: PriceOptions,
) -> None:
    """Run a trace in the format openb or google; the output is that of `simulate scenario`.

    Pods are created at the times of the trace and run as long as in the trace. The simulated
    scheduler selects their nodes. docs/simulate.md lists the columns of both formats.
    """
    from moorage.scenarios import google, openb

    if style == "openb":
        plan = openb.load(pods_file, nodes_file, seed=seed)
    else:
        plan = google.load(pods_file, nodes_file, seed=seed, cpu=largest_cpu, memory=largest_memory)
    config = inputs.configuration(config_file)
    _play(plan, paths, config, seed, output, report, prices)


def _play(
    plan: "ScenarioPlan",
    paths: tuple[str, ...],
    config: "SchedulerConfiguration",
    seed: int,
    output: str,
    report: ReportOptions,
    prices: PriceOptions,
    record_file: str | None = None,
) -> bool:
    """Run a plan to its end and print the result; whether pods are pending then."""
    from moorage.planning.cost_meter import CostMeter
    from moorage.scenarios.play import Play

    objects = inputs.cluster(paths).everything if paths else []
    price_list = prices.load()
    with ProgressBar("simulating") as progress:
        playing = Play(plan, objects, config, seed, trace=record_file is not None)
        price_options.cost(price_list, playing.simulation)  # As in `simulate`.
        meter = None if price_list is None else CostMeter(playing.simulation, price_list)
        simulation = playing.run(progress.update)
    _record(record_file, simulation)
    result = simulation.result
    cost = price_options.cost(price_list, simulation, meter)
    report.write(simulation, result, cost, title=plan.name, seed=seed, config=config)
    explained = report.answers(simulation, config)
    if output == "table":
        from moorage.cli import result_tables

        result_tables.show_course(result, plan.name, seed, cost)
        _show_explanations(explained, show_all=False)
    else:
        named = {"name": plan.name, "seed": seed}
        more = {**_plain_cost(cost), **_plain_explanations(explained)}
        documents.write({**named, **result.to_dict(), **more}, output)
    return bool(result.pending_pods or result.refused)


def _plain_cost(cost: "ClusterCost | None") -> dict[str, Any]:
    return {} if cost is None else {"cost": cost.to_dict()}


def _show_explanations(explained: "Iterable[Explanation]", *, show_all: bool) -> None:
    """Print the decisions that --explain asks for."""
    from moorage.cli import explain_tables

    for each in explained:
        click.echo()
        explain_tables.show(each, Counter(), show_all=show_all)


def _plain_explanations(explained: "Iterable[Explanation]") -> dict[str, Any]:
    found = {each.pod.key: each.to_dict() for each in explained}
    return {"explanations": found} if found else {}


def _sweep(
    task: "SweepRun", sweep: SweepOptions, output: str, skipped: Counter[str], *, show_all: bool
) -> bool:
    """Make all runs of a sweep and print them; whether pods are pending in any."""
    finished = sweep.run(task)
    if output == "table":
        from moorage.cli import sweep_tables

        sweep_tables.show(finished, skipped, show_all=show_all)
    else:
        documents.write(finished.to_dict(), output)
    return any(run.summary["pending"] for run in finished.runs)


def _record(file: str | None, simulation: "Simulation") -> None:
    if file is not None:
        from moorage.planning import recording

        recording.write(file, simulation)
