"""`moorage ui`: a cluster of files, or a live one, in a browser."""

from typing import TYPE_CHECKING

import click

from moorage import garbage
from moorage.cli import inputs, options, price_options
from moorage.cli.price_options import PriceOptions
from moorage.errors import InputError

if TYPE_CHECKING:
    from moorage.ui.server import SnapshotSource

ADDRESS = "127.0.0.1"
SHUTDOWN_SECONDS = 1.0


@click.command(short_help="Show a cluster or a recording in a browser.")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@options.validate
@options.cluster
@options.configuration
@price_options.options
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default=True,
    help="The port on 127.0.0.1; 0 selects a free one.",
)
@click.option("--no-browser", is_flag=True, help="Print the address and open no browser.")
def ui(
    paths: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    config_file: str | None,
    prices: PriceOptions,
    port: int,
    *,
    no_browser: bool,
) -> None:
    """Show nodes, pods and why pods are pending, as a page in the browser.

    PATH is a YAML or JSON file of Kubernetes objects, a folder of them, or a recording of
    `moorage simulate --record FILE` or `moorage record FILE`, which the page shows at any time.
    Without PATH, the live cluster of the kubeconfig is read once. Nothing is changed. With --prices
    or --price-label, what-ifs have the difference of the cost per hour. Ctrl-C stops it.
    """
    import asyncio

    from moorage.api import texts
    from moorage.planning import recording
    from moorage.reporting import axes
    from moorage.ui import server
    from moorage.ui.snapshot import ClusterSnapshot

    if len(paths) == 1 and recording.is_recording(paths[0]):
        if config_file is not None:
            raise click.UsageError("--config: a recording has its own configuration.")
        from moorage.ui.timeline import Timeline

        timeline = Timeline(recording.read(paths[0]), paths[0], prices.load())
        begin = f"{axes.span(timeline.end)} of a recording"
        source = server.RecordedSource(timeline)
        asyncio.run(_serve(source, begin, port, opens_browser=not no_browser))
        return
    if recorded := [each for each in paths if recording.is_recording(each)]:
        raise InputError(f"{recorded[0]}: is a recording, and is shown alone; name no other PATH")
    with garbage.not_collected():
        manifest, live = inputs.files_or_cluster(paths, kubeconfig, context, "PATH")
        title = ", ".join(paths) if live is None else live.server
        given = [each for path in paths for each in ("-f", path)] or ["-f", "cluster.json"]
        for option, value in (
            ("--config", config_file),
            ("--prices", prices.price_file),
            ("--price-label", prices.price_label),
        ):
            given += [] if value is None else [option, value]
        snapshot = ClusterSnapshot(
            manifest.everything,
            inputs.configuration(config_file),
            title=title,
            options=given,
            prices=prices.load(),
        )
        if not snapshot.rows:
            raise InputError("the cluster is empty: there is no Node among the objects given")
    begin = texts.count(len(snapshot.rows), "node")
    asyncio.run(_serve(server.FixedSource(snapshot), begin, port, opens_browser=not no_browser))


async def _serve(source: "SnapshotSource", begin: str, port: int, *, opens_browser: bool) -> None:
    import asyncio
    import signal
    import webbrowser

    from moorage.live import http_server
    from moorage.ui import server

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    app = server.local_app(source)
    async with http_server.running(app, shutdown_seconds=SHUTDOWN_SECONDS) as runner:
        try:
            bound = await http_server.listen(runner, ADDRESS, port, None)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise InputError(f"cannot listen on {ADDRESS}:{port}: {why}") from None
        url = f"http://{ADDRESS}:{bound}/ui"
        click.echo(f"{begin} at {url}\nCtrl-C stops it.")
        if opens_browser:
            webbrowser.open(url)
        await stop.wait()
