"""The planning questions of `moorage simulate`: capacity, drain, add-nodes and others.

Each command reads the input, calls the function of the same name in `moorage.planning` and prints
its answer.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from moorage.cli import documents, inputs, options, price_options
from moorage.cli.price_options import PriceOptions
from moorage.cli.progress import ProgressBar, StatusLine

if TYPE_CHECKING:
    from moorage.api.config import Source
    from moorage.api.meta import KubeObject
    from moorage.planning.capacity import Capacity
    from moorage.planning.gangs import GangCapacity
    from moorage.planning.pod_sets import PodSetCapacity

F = TypeVar("F", bound=Callable[..., Any])

# The exit code of an answer that is "no".
NO = 1


@click.command(short_help="Count how many more pods of a kind fit, and find the bottleneck.")
@options.files
@click.option(
    "--pod",
    "pod_files",
    metavar="FILE",
    multiple=True,
    required=True,
    help="A file with Pods, or workloads whose pods are counted. With several of them, whole sets "
    "of one pod each are counted. May be repeated; a file that is named twice counts twice.",
)
@click.option(
    "--gang",
    "gang_size",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Count whole gangs of N pods. Default: pods are counted, or gangs if the pod belongs to a "
    "PodGroup with a minCount. All pods of a gang are in one topology domain if the PodGroup has "
    "a constraint.",
)
@options.configuration
@options.seed
@click.option(
    "--pool-label",
    metavar="KEY",
    help="The node label that groups nodes into pools. Default: the labels of common providers.",
)
@click.option(
    "--at-least",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    help="Exit with code 1 if fewer than N pods, sets or gangs fit.",
)
@click.option(
    "--most",
    type=click.IntRange(1, 1_000_000_000),
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="Stop counting at N pods, sets or gangs.",
)
@click.option(
    "--exclude-nodes",
    "excluded",
    metavar="NODES",
    multiple=True,
    help="Leave these nodes out of the cluster: names or patterns separated by commas "
    "(general-1,spot-*), or a label selector (zone=eu-1b). May be repeated.",
)
@options.answer_output
@options.everything("List every node on which pods fit.")
@click.pass_context
def capacity(
    context: click.Context,
    paths: tuple[str, ...],
    pod_files: tuple[str, ...],
    gang_size: int | None,
    config_file: str | None,
    seed: int,
    pool_label: str | None,
    at_least: int,
    most: int,
    excluded: tuple[str, ...],
    output: str,
    *,
    show_all: bool,
) -> None:
    """Count how many more pods of a kind fit into a cluster, and print what runs out first.

    Pending pods of the input are placed first. Then copies of the pod are scheduled one by one
    until one does not fit. No pod is preempted. With several pods the answer is the number of whole
    sets that fit together, and the number of each pod that fits alone. With --gang the answer is
    the number of whole gangs.
    """
    from moorage.planning.capacity import capacity as answer_capacity
    from moorage.planning.excluded_nodes import without_nodes
    from moorage.planning.gangs import gang_capacity, is_gang
    from moorage.planning.pod_sets import pod_sets

    manifest = inputs.cluster(paths)
    objects = manifest.everything
    pods: list[KubeObject] = []
    for file in pod_files:
        found, along = inputs.pods(file, objects)
        pods += found
        objects = [*objects, *along]
    if excluded:
        objects = without_nodes(objects, excluded)
    counts_gangs = gang_size is not None or (len(pods) == 1 and is_gang(pods[0], objects))
    if counts_gangs and len(pods) > 1:
        raise click.UsageError("--gang counts gangs of one pod; --pod has several")
    ask: Callable[..., Capacity | PodSetCapacity | GangCapacity]
    if counts_gangs:
        ask = partial(gang_capacity, pod=pods[0], size=gang_size)
    elif len(pods) == 1:  # A single pod has a more detailed answer than a set.
        ask = partial(answer_capacity, pod=pods[0])
    else:
        ask = partial(pod_sets, pods=pods)
    with ProgressBar("placing") as progress:
        answer = ask(
            objects,
            config=inputs.configuration(config_file),
            seed=seed,
            pool_label=pool_label,
            most=most,
            on_progress=progress.update,
        )
    _print(answer, output, manifest.skipped, show_all=show_all)
    context.exit(NO if answer.fits < at_least else 0)


@click.command(short_help="Show where pods move if nodes are drained, and what blocks the drain.")
@click.argument("nodes", metavar="[NODE]...", nargs=-1)
@click.option(
    "-l", "--selector", default="", metavar="SELECTOR", help="Drain all nodes with these labels."
)
@options.files
@options.configuration
@options.seed
@options.answer_output
@options.everything("List every pod that moves.")
@click.option(
    "--fail-on-pending",
    is_flag=True,
    help="Exit with code 1 if a pod has no node, is blocked by a disruption budget, or is lost.",
)
@click.pass_context
def drain(
    context: click.Context,
    nodes: tuple[str, ...],
    selector: str,
    paths: tuple[str, ...],
    config_file: str | None,
    seed: int,
    output: str,
    *,
    show_all: bool,
    fail_on_pending: bool,
) -> None:
    """Simulate a drain of NODEs, or of the nodes that a selector matches.

    As with kubectl drain --ignore-daemonsets --force, the nodes are cordoned and their pods are
    evicted as far as disruption budgets allow. Pods with a controller are created again and
    scheduled on other nodes. Pending pods of the input are placed first.
    """
    from moorage.planning.drain import drain as answer_drain

    manifest = inputs.cluster(paths)
    with ProgressBar("draining") as progress:
        answer = answer_drain(
            manifest.everything,
            nodes,
            selector,
            inputs.configuration(config_file),
            seed=seed,
            on_progress=progress.update,
        )
    _print(answer, output, manifest.skipped, show_all=show_all)
    context.exit(NO if fail_on_pending and not answer.is_clean else 0)


@click.command(
    "add-nodes", short_help="Find the fewest new nodes, or the cheapest, with which all pods fit."
)
@options.files
@click.option(
    "--template",
    "templates",
    metavar="FILE",
    multiple=True,
    required=True,
    help="A file with Nodes or NodePools that can be added. May be repeated.",
)
@price_options.options
@click.option(
    "--tries",
    "most_tries",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="Try at most N mixes in search of the cheapest. Default: 10 to 500, fewer for more pods.",
)
@options.configuration
@options.seed
@options.answer_output
@options.everything("List the node of every pod.")
@click.pass_context
def add_nodes(
    context: click.Context,
    paths: tuple[str, ...],
    templates: tuple[str, ...],
    prices: PriceOptions,
    most_tries: int | None,
    config_file: str | None,
    seed: int,
    output: str,
    *,
    show_all: bool,
) -> None:
    """Find the fewest new nodes with which every pending pod gets a node.

    The scheduler places the pods on the cluster with some number of new nodes; the pods that remain
    determine the next number to try. Running pods stay on their nodes, no pod is preempted, and new
    nodes get their DaemonSet pods. Exit code 1: some pods fit on no template.

    With --prices or --price-label the answer is the cheapest mix of templates. The output says
    whether a cheaper mix may exist, and what any mix costs at least.
    """
    from moorage.api import texts
    from moorage.planning.add_nodes import add_nodes as answer_add_nodes

    price_list = prices.load()
    if most_tries is not None and price_list is None:
        raise click.UsageError("--tries requires --prices or --price-label")
    manifest = inputs.cluster(paths)
    candidates = inputs.cluster(templates).everything
    with StatusLine("trying") as status:
        answer = answer_add_nodes(
            manifest.everything,
            candidates,
            inputs.configuration(config_file),
            seed=seed,
            prices=price_list,
            most_tries=most_tries,
            on_try=lambda nodes: status.say(f"with {texts.count(nodes, 'new node')}"),
        )
    _print(answer, output, manifest.skipped, show_all=show_all)
    context.exit(NO if answer.impossible else 0)


def _changes(command: F) -> F:
    """An option for each kind of change."""
    for kind, metavar, text in reversed(
        (
            ("weight", "PLUGIN:WEIGHT", "Change the weight of a score plugin."),
            ("queue", "QUEUE:max.cpu=8,weight=2", "Change guaranteed, max or weight of a queue."),
            ("add", "NODE:COUNT", "Add nodes like a node, or of a NodePool."),
            ("pods", "POD:COUNT", "Add pods like a pod (namespace/name)."),
            ("requests", "POD:cpu=2,memory=4Gi", "Change what a pod requests in total."),
            ("tolerate", "POD:KEY[=VALUE][:EFFECT]", "Add a toleration to a pod."),
            ("cordon", "NODE", "Cordon a node."),
            ("uncordon", "NODE", "Uncordon a node."),
            ("remove", "NODE", "Remove a node, without a drain."),
            ("drain", "NODE", "Drain a node."),
        )
    ):
        command = click.option(f"--{kind}", metavar=metavar, multiple=True, help=text)(command)
    return click.option(
        "--new-config",
        metavar="FILE",
        help="Switch to the configuration of a file. --config is the one without the changes.",
    )(command)


@click.command("what-if", short_help="Show which pods are placed, moved or pending after changes.")
@_changes
@options.files
@options.configuration
@price_options.options
@options.seed
@options.answer_output
@options.everything("List every pod that moves or gets a node.")
@click.option(
    "--fail-on-pending",
    is_flag=True,
    help="Exit with code 1 if a pod loses its node, is lost, or a disruption budget blocks it.",
)
@click.pass_context
def what_if(
    context: click.Context,
    /,
    paths: tuple[str, ...],
    config_file: str | None,
    new_config: str | None,
    prices: PriceOptions,
    seed: int,
    output: str,
    *,
    show_all: bool,
    fail_on_pending: bool,
    **changes: tuple[str, ...],
) -> None:
    """Change a cluster, and compare with the cluster as it is.

    Pending pods are placed in both. Each option can be repeated and combined with others. A change
    of a pod applies to all pods of its controller; pods that run are recreated with it. With
    --prices or --price-label the answer has the difference of the cost per hour.
    """
    from moorage.planning.what_if import what_if as answer_what_if

    price_list = prices.load()
    manifest = inputs.cluster(paths)
    given = [(kind, text) for kind, each in changes.items() for text in each]
    answer = answer_what_if(
        manifest.everything,
        given,
        inputs.configuration(config_file),
        new_config=None if new_config is None else inputs.configuration(new_config),
        prices=price_list,
        seed=seed,
    )
    _print(answer, output, manifest.skipped, show_all=show_all)
    context.exit(NO if fail_on_pending and not answer.is_clean else 0)


@click.command(short_help="Find on how few of its nodes the workload fits.")
@options.files
@options.configuration
@click.option(
    "--seeds",
    type=click.IntRange(1, 10_000),
    default=11,
    show_default=True,
    metavar="N",
    help="Number of random orders in which nodes are removed.",
)
@click.option(
    "--allow-pending",
    type=options.Number(min=0, max=100),
    default=0.0,
    show_default=True,
    metavar="PERCENT",
    help="Percentage of pods that may remain pending.",
)
@options.workers
@options.answer_output
def compact(
    paths: tuple[str, ...],
    config_file: str | None,
    seeds: int,
    allow_pending: float,
    workers: int | None,
    output: str,
) -> None:
    """Remove nodes at random until the workload no longer fits, for several seeds.

    This is the cell compaction of Borg: the whole workload is scheduled again on the remaining
    nodes, and the result is the 90th percentile over the seeds. DaemonSet pods are removed with
    their nodes.
    """
    from moorage.planning.compact import compact as answer_compact
    from moorage.sweeping import processes

    manifest = inputs.cluster(paths)
    with ProgressBar("compacting") as progress:
        answer = answer_compact(
            manifest.everything,
            inputs.configuration(config_file),
            seeds=range(seeds),
            allowed_share=allow_pending / 100,
            each=partial(processes.each, workers=workers, on_progress=progress.update),
        )
    _print(answer, output, manifest.skipped)


@click.command(short_help="Compare configurations or plugins on the same workload.")
@click.argument("configs", metavar="CONFIG...", nargs=-1, required=True)
@options.files
@options.seed
@click.option(
    "--repack",
    is_flag=True,
    help="Schedule running pods again as well.",
)
@options.until
@options.workers
@options.answer_output
@options.everything("List every pod that moves.")
def compare(
    configs: tuple[str, ...],
    paths: tuple[str, ...],
    seed: int,
    until: float | None,
    workers: int | None,
    output: str,
    *,
    repack: bool,
    show_all: bool,
) -> None:
    """Simulate the same workload with each CONFIG, and compare the results with the first.

    CONFIG is a KubeSchedulerConfiguration file, "default" for the configuration of kube-scheduler,
    or a plugin (file.py:Class or module:Class) that is added to it. A single CONFIG is compared
    with the default.
    """
    from moorage.errors import InputError
    from moorage.planning.compare import DEFAULT
    from moorage.planning.compare import compare as answer_compare
    from moorage.sweeping import processes

    if set(configs) == {DEFAULT}:
        raise InputError(
            f"{DEFAULT} cannot be compared with itself; add a configuration, or a plugin as "
            "file.py:Class"
        )
    names = (DEFAULT, *configs) if len(set(configs)) == 1 else configs
    sources = {name: inputs.configuration(_source(name)) for name in names}
    manifest = inputs.cluster(paths)
    with ProgressBar("comparing") as progress:
        answer = answer_compare(
            manifest.everything,
            sources,
            seed=seed,
            repack=repack,
            until=until,
            each=partial(processes.each, workers=workers, on_progress=progress.update),
        )
    _print(answer, output, manifest.skipped, show_all=show_all)


def _source(name: str) -> "Source":
    from moorage.planning.compare import DEFAULT, with_plugin

    if name == DEFAULT:
        return None
    return with_plugin(name) if ":" in name and not Path(name).exists() else name


@click.command(short_help="Repeat a recorded run, exactly or with another configuration.")
@click.argument("file", metavar="FILE")
@options.configuration_or("see above")
@options.answer_output
@options.everything("List every pod that moves.")
@click.pass_context
def replay(
    context: click.Context, file: str, config_file: str | None, output: str, *, show_all: bool
) -> None:
    """Repeat what `moorage simulate --record FILE` or `moorage record FILE` recorded.

    Without --config, every call of the scheduler is repeated and compared byte for byte; exit code
    1 means that something differs. With --config, the recorded changes of the cluster are given to
    a scheduler with that configuration, and the results are compared. A recording of a live cluster
    has no calls of a scheduler: without --config, its changes are given to a scheduler with the
    default configuration.
    """
    from moorage.planning import recording
    from moorage.planning.replay import replay as answer_replay
    from moorage.planning.replay import rerun

    recorded = recording.read(file)
    if config_file is None and not recorded.is_live:
        same = answer_replay(recorded)
        _print(same, output)
        context.exit(0 if same.is_same else NO)
    _print(rerun(recorded, inputs.configuration(config_file)), output, show_all=show_all)


class _Answer(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


def _print(
    answer: _Answer, output: str, skipped: Counter[str] | None = None, *, show_all: bool = False
) -> None:
    """Print an answer as tables or as one document."""
    if output == "table":
        from moorage.cli import planning_tables

        planning_tables.show(answer, skipped or Counter(), show_all=show_all)
    else:
        documents.write(answer.to_dict(), output)
