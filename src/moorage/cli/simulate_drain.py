"""`moorage simulate drain`: what moves where, what stays pending, what holds it up."""

import click

from moorage.cli import options

NOT_CLEAN = 1


@click.command(short_help="What moves where if nodes are drained, and what holds it up.")
@click.argument("nodes", metavar="[NODE]...", nargs=-1)
@click.option(
    "-l", "--selector", default="", metavar="SELECTOR", help="Drain all nodes with these labels."
)
@options.files
@options.configuration
@options.seed
@options.output(*options.OUTPUTS)
@options.everything("List every pod that moves.")
@click.option(
    "--fail-on-pending",
    is_flag=True,
    help="Exit with 1 if a pod is left without a node, held up by a budget, or lost.",
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
    """Drain NODEs, or those that a selector matches, and say what becomes of their pods.

    As kubectl drain --ignore-daemonsets --force would: the nodes are cordoned and their pods
    evicted, as far as disruption budgets allow; whoever has a controller is made anew and scheduled
    elsewhere. Pods that are pending in the input are placed first.
    """
    from moorage.cli import documents, inputs
    from moorage.cli.progress import Progress
    from moorage.planning.drain import drain as ask

    manifest = inputs.cluster(paths)
    with Progress("draining") as progress:
        answer = ask(
            manifest.everything,
            nodes,
            selector,
            config_file,
            seed=seed,
            on_progress=progress.update,
        )
    if output == "table":
        from moorage.cli import drain_tables

        drain_tables.show(answer, manifest.skipped, show_all=show_all)
    else:
        documents.write(answer.to_dict(), output)
    context.exit(NOT_CLEAN if fail_on_pending and not answer.is_clean else 0)
