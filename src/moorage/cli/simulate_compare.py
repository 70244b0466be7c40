"""`moorage simulate compare`: the same workload under several configurations."""

from typing import TYPE_CHECKING

import click

from moorage.cli import options

if TYPE_CHECKING:
    from moorage.api.config import Source


@click.command(short_help="The same workload under several configurations or plugins.")
@click.argument("configs", metavar="CONFIG...", nargs=-1, required=True)
@options.files
@options.seed
@click.option(
    "--repack",
    is_flag=True,
    help="Decide on running pods as well, as if none of them had a node yet.",
)
@click.option(
    "--until",
    type=options.Number(min=0),
    metavar="SECONDS",
    help="Stop at this moment of virtual time. Without it: when nothing is left to do.",
)
@options.workers
@options.output(*options.OUTPUTS)
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
    """Run the same workload under each CONFIG, and hold the others against the first.

    CONFIG is a KubeSchedulerConfiguration, "default" for kube-scheduler's own, or a plugin
    (file.py:Class or module:Class) that is added to that. One alone is compared with the default.
    """
    from functools import partial

    from moorage.cli import documents, inputs
    from moorage.cli.progress import Progress
    from moorage.errors import InputError
    from moorage.planning.compare import DEFAULT
    from moorage.planning.compare import compare as ask
    from moorage.sweeping import processes

    if set(configs) == {DEFAULT}:
        raise InputError(
            f"{DEFAULT} has nothing to be compared with; name another configuration, or a plugin "
            "as file.py:Class"
        )
    names = (DEFAULT, *configs) if len(set(configs)) == 1 else configs
    sources = {name: _source(name) for name in names}
    manifest = inputs.cluster(paths)
    with Progress("comparing") as progress:
        answer = ask(
            manifest.everything,
            sources,
            seed=seed,
            repack=repack,
            until=until,
            each=partial(processes.each, workers=workers, on_progress=progress.update),
        )
    if output == "table":
        from moorage.cli import compare_tables

        compare_tables.show(answer, manifest.skipped, show_all=show_all)
    else:
        documents.write(answer.to_dict(), output)


def _source(name: str) -> "Source":
    from pathlib import Path

    from moorage.planning.compare import DEFAULT, with_plugin

    if name == DEFAULT:
        return None
    return with_plugin(name) if ":" in name and not Path(name).exists() else name
