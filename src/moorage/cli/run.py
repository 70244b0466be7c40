"""`moorage run`: schedule a live cluster."""

from typing import Any

import click

from moorage.cli import election, options, serving


@click.command(short_help="Schedule the pods of a live cluster.")
@options.configuration
@options.cluster
@click.option("--master", metavar="URL", help="Overrides the server of the kubeconfig.")
@click.option("--kube-api-qps", "qps", type=float, help="Requests a second; -1: no limit. [50]")
@click.option("--kube-api-burst", "burst", type=int, help="Requests at once. [100]")
@election.flags
@serving.flags
@click.option("--seed", type=int, default=0, show_default=True, help="Decides between equal nodes.")
@click.option(
    "-v", "--v", "verbosity", type=election.Level(), default=0, help="How much to log: 0 to 10."
)
@click.option(
    "--logging-format", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.pass_context
def run(
    outer: click.Context,
    /,
    config_file: str | None,
    context: str | None,
    master: str | None,
    seed: int,
    verbosity: int,
    logging_format: str,
    **flags: Any,
) -> None:
    """Schedule the pods of a live cluster, beside or instead of kube-scheduler.

    What the command line says beats what the file of --config says. It ends with 0 when it is told
    to stop (SIGTERM), and with 1 when it loses its lease.
    """
    from msgspec import structs

    from moorage.api import config
    from moorage.live import kubeconfig, logs, start
    from moorage.live.extenders import HttpExtenders

    _check_extras()
    logs.configure(logging_format, verbosity)
    answering = serving.take(flags)
    configuration = election.apply(config.load(config_file), **flags)
    connection = kubeconfig.find(configuration.client_connection.kubeconfig, context=context)
    if master:
        connection = structs.replace(connection, server=master.rstrip("/"))
    extenders = HttpExtenders(configuration.extenders) if configuration.extenders else None
    try:
        scheduler, companion = serving.measured(configuration, seed, extenders, answering)
        scheduler.metrics.host = connection.server.partition("//")[2]
        work = start.schedule(
            configuration,
            connection,
            scheduler,
            companion=companion,
            extenders=extenders,
            observer=scheduler.metrics.requested,
        )
        outer.exit(start.run(work))
    finally:
        if extenders is not None:
            extenders.close()


def _check_extras() -> None:
    from importlib.util import find_spec

    from moorage.errors import InputError

    missing = [name for name in ("prometheus_client", "cryptography") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"moorage run needs {' and '.join(missing)}; pip install 'moorage[live]' brings them"
        )
