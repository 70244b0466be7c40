"""`moorage simulate add-nodes`: the fewest nodes of given templates until everything fits."""

import click

from moorage.cli import options

NEVER_ENOUGH = 1


@click.command("add-nodes", short_help="The fewest nodes of given templates until all pods fit.")
@options.files
@click.option(
    "--template",
    "templates",
    metavar="FILE",
    multiple=True,
    required=True,
    help="A Node or NodePool as the new ones would be; may be repeated, and hold several.",
)
@options.configuration
@options.seed
@options.output(*options.OUTPUTS)
@options.everything("List where every pod would go.")
@click.pass_context
def add_nodes(
    context: click.Context,
    paths: tuple[str, ...],
    templates: tuple[str, ...],
    config_file: str | None,
    seed: int,
    output: str,
    *,
    show_all: bool,
) -> None:
    """Say how many nodes have to be added until every pod has one.

    The scheduler itself packs the cluster with some number of new nodes, and what is left over says
    which number to try next. Pods that run stay where they are, nobody has to make room, and
    daemon sets take their share of new nodes. Exit code 1: some pods fit on none of the templates.
    """
    from moorage.cli import documents, inputs
    from moorage.cli.progress import Status
    from moorage.planning.add_nodes import add_nodes as ask

    manifest = inputs.cluster(paths)
    sorts = inputs.cluster(templates).everything
    with Status("trying") as status:
        answer = ask(
            manifest.everything,
            sorts,
            config_file,
            seed=seed,
            on_try=lambda nodes: status.say(f"with {nodes:,} new nodes"),
        )
    if output == "table":
        from moorage.cli import add_nodes_tables

        add_nodes_tables.show(answer, manifest.skipped, show_all=show_all)
    else:
        documents.write(answer.to_dict(), output)
    context.exit(NEVER_ENOUGH if answer.impossible else 0)
