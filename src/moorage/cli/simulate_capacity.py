"""`moorage simulate capacity`: how many more of this pod fit, and what runs out first."""

import click

from moorage.cli import options

TOO_FEW = 1


@click.command(short_help="How many more of this pod fit, and what runs out first.")
@options.files
@click.option(
    "--pod",
    "pod_file",
    metavar="FILE",
    required=True,
    help="A manifest with the pod in question, or a workload whose pods are meant.",
)
@options.configuration
@options.seed
@click.option(
    "--pool-label",
    metavar="KEY",
    help="The node label that names a node's pool. Without it: the usual ones are tried.",
)
@click.option(
    "--at-least",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    help="Exit with 1 if fewer than so many fit.",
)
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="Stop counting there.",
)
@options.output(*options.OUTPUTS)
@options.everything("List every node that takes some.")
@click.pass_context
def capacity(
    context: click.Context,
    paths: tuple[str, ...],
    pod_file: str,
    config_file: str | None,
    seed: int,
    pool_label: str | None,
    at_least: int,
    most: int,
    output: str,
    *,
    show_all: bool,
) -> None:
    """Say how many more of a pod fit into a cluster, and what runs out first.

    Pods that are pending in the input are placed first. Then one pod after the other is placed like
    the one in question, by the scheduler itself, until one is refused. Nobody has to make room.
    """
    from moorage.cli import documents, inputs
    from moorage.cli.progress import Progress
    from moorage.planning.capacity import capacity as ask

    manifest = inputs.cluster(paths)
    pod, along = inputs.pod(pod_file, manifest.everything)
    with Progress("placing") as progress:
        answer = ask(
            [*manifest.everything, *along],
            pod,
            config_file,
            seed=seed,
            pool_label=pool_label,
            most=most,
            on_progress=progress.update,
        )
    if output == "table":
        from moorage.cli import capacity_tables

        capacity_tables.show(answer, manifest.skipped, show_all=show_all)
    else:
        documents.write(answer.to_dict(), output)
    context.exit(TOO_FEW if answer.fits < at_least else 0)
