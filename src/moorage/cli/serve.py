"""`moorage serve`: a Kubernetes-style API with the scheduler inside, in one process."""

from pathlib import Path

import click

from moorage import terminal
from moorage.cli import inputs, options
from moorage.errors import InputError

DEFAULT_PORT = 6440


@click.command(short_help="Serve a Kubernetes API with the scheduler, for learning and tests.")
@click.option(
    "--nodes",
    "node_count",
    type=click.IntRange(0, 10_000),
    default=None,
    metavar="COUNT",
    help="Number of nodes to create at the start. Default: 10, or none if the input has nodes.",
)
@options.optional_files
@options.configuration
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=DEFAULT_PORT,
    show_default=True,
    help="The port; 0 selects a free one.",
)
@click.option(
    "--bind-address",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address to listen on. A non-loopback address requires a token and TLS.",
)
@click.option(
    "--token-file", metavar="FILE", help="A file with the bearer token that clients must send."
)
@click.option(
    "--tls-cert", metavar="FILE", help="The certificate for HTTPS, in PEM; requires --tls-key."
)
@click.option("--tls-key", metavar="FILE", help="The private key of the certificate.")
@click.option(
    "--data-dir",
    metavar="FOLDER",
    help="Store all objects in this folder, and load them at the next start. Default: in memory.",
)
@click.option(
    "--check",
    "is_check",
    is_flag=True,
    help="Only check the database in --data-dir; from a damaged one, save what is readable.",
)
@click.option(
    "--kubeconfig-out",
    metavar="FILE",
    help="Where to write the kubeconfig. Default: kubeconfig in --data-dir, or moorage.kubeconfig.",
)
@click.option(
    "--no-scheduler",
    is_flag=True,
    help="Do not run a scheduler, so that `moorage run` or kube-scheduler can schedule the pods.",
)
@click.option(
    "--no-controllers",
    is_flag=True,
    help="Run the kubelets only, so that kube-controller-manager can run the controllers.",
)
@click.option(
    "--annotate-results",
    is_flag=True,
    help="Write the results of each plugin to the annotations of pods, as kube-scheduler-simulator "
    "does.",
)
def serve(
    node_count: int | None,
    paths: tuple[str, ...],
    config_file: str | None,
    port: int,
    bind_address: str,
    token_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    data_dir: str | None,
    kubeconfig_out: str | None,
    *,
    is_check: bool,
    no_scheduler: bool,
    no_controllers: bool,
    annotate_results: bool,
) -> None:
    """Serve a Kubernetes-style API with controllers, simulated kubelets and the scheduler.

    It runs in one process and is meant for learning and tests: no containers are started. A
    kubeconfig is written, with which kubectl and other clients connect. Ctrl-C stops it.
    """
    from moorage.live import start
    from moorage.serve import access, server

    if is_check:
        _check(data_dir)
        return
    if annotate_results and no_scheduler:
        raise InputError("--annotate-results: needs the scheduler; omit --no-scheduler")
    found = inputs.plain_documents(paths)
    configuration = None if no_scheduler else inputs.configuration(config_file)
    folder = None if data_dir is None else Path(data_dir)
    default_out = Path("moorage.kubeconfig") if folder is None else folder / "kubeconfig"
    options = server.ServeOptions(
        access=access.read_options(bind_address, port, token_file, tls_cert, tls_key),
        node_count=node_count,
        found=found,
        configuration=configuration,
        data_dir=folder,
        annotate_results=annotate_results,
        runs_controllers=not no_controllers,
        kubeconfig=default_out if kubeconfig_out is None else Path(kubeconfig_out),
    )
    start.run(server.serve(options, say=click.echo))


def _check(data_dir: str | None) -> None:
    """Check a database; exit code 1 if it was damaged."""
    from moorage.api import texts
    from moorage.serve import rescue

    if data_dir is None:
        raise InputError("--check: needs --data-dir FOLDER")
    found = rescue.check(Path(data_dir))
    for problem in found.problems:
        click.echo(terminal.visible(problem))
    saved = texts.count(len(found.rows), "object")
    if found.kept is None:
        click.echo(f"{data_dir}: {saved}, no damage found")
        return
    click.echo(f"{data_dir}: {saved} saved; the damaged database is {found.kept}")
    raise click.exceptions.Exit(1)
