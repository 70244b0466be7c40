"""`moorage simulate compact`: on how few of its nodes the workload would still fit."""

import click

from moorage.cli import options


@click.command(short_help="On how few of its nodes the workload would still fit.")
@options.files
@options.configuration
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=11,
    show_default=True,
    metavar="N",
    help="In how many random orders nodes are removed.",
)
@click.option(
    "--allow-pending",
    type=options.Number(min=0, max=100),
    default=0.0,
    show_default=True,
    metavar="PERCENT",
    help="So many pods may be left without a node.",
)
@options.workers
@options.output(*options.OUTPUTS)
def compact(
    paths: tuple[str, ...],
    config_file: str | None,
    seeds: int,
    allow_pending: float,
    workers: int | None,
    output: str,
) -> None:
    """Remove nodes at random until the workload no longer fits, for several seeds.

    This is Borg's cell compaction: the whole workload is packed from scratch on the nodes that are
    left, and the 90th percentile over the seeds is the answer. Daemons go with their nodes.
    """
    from functools import partial

    from moorage.cli import documents, inputs
    from moorage.cli.progress import Progress
    from moorage.planning.compact import compact as ask
    from moorage.sweeping import processes

    manifest = inputs.cluster(paths)
    with Progress("compacting") as progress:
        answer = ask(
            manifest.everything,
            config_file,
            seeds=range(seeds),
            allowed_share=allow_pending / 100,
            each=partial(processes.each, workers=workers, on_progress=progress.update),
        )
    if output == "table":
        from moorage.cli import compact_tables

        compact_tables.show(answer, manifest.skipped)
    else:
        documents.write(answer.to_dict(), output)
