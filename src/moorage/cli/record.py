"""`moorage record`: the changes of a live cluster as a file that `simulate replay` reads."""

from typing import TYPE_CHECKING

import click

from moorage.cli import options
from moorage.errors import InputError

if TYPE_CHECKING:
    from moorage.live.connection import Connection
    from moorage.recording.recorder import ClusterRecorder


@click.command(short_help="Record the changes of a live cluster, for simulate replay.")
@click.argument("file", metavar="FILE")
@options.cluster
@click.option(
    "--for",
    "seconds",
    type=options.DurationType(positive=True),
    metavar="DURATION",
    help="Stop after this time, such as 10m. Default: stop on Ctrl-C or SIGTERM.",
)
def record(file: str, kubeconfig: str | None, context: str | None, seconds: float | None) -> None:
    """Record the changes of a live cluster in FILE, for `moorage simulate replay FILE`.

    FILE has one JSON line per change, with its time, and the fields that scheduling reads: no
    environment variables, no commands, no secrets. A name that ends in .gz compresses it. The
    cluster is only read.
    """
    from moorage.live import kubeconfig as kubeconfigs
    from moorage.live import logs, start

    logs.configure("text", 0)
    connection = kubeconfigs.find(kubeconfig or "", context=context)
    start.run(_record(connection, file, seconds))


async def _record(connection: "Connection", file: str, seconds: float | None) -> int:
    import asyncio
    import signal
    from datetime import UTC, datetime

    from moorage.api import config
    from moorage.live import kinds, start
    from moorage.live.client import Client
    from moorage.planning.recording import RecordingFile
    from moorage.recording.recorder import ClusterRecorder

    async with Client(connection, user_agent="recorder", read_only=True) as client:
        await client.check()
        started_at = datetime.now(UTC)  # noqa: TID251 a recording says when it was made
        out = RecordingFile(file, started_at.isoformat(timespec="seconds"))
        try:
            # As a shadow, so that the same role is enough.
            read = kinds.watched(start.plugins(config.load(None)))
            recorder = ClusterRecorder(client, [kind for kind, _ in read], out)
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, recorder.stop)
            if seconds is not None:
                loop.call_later(seconds, recorder.stop)
            await recorder.run()
        finally:
            out.close()
    if not recorder.is_started:
        raise InputError(f"{file}: is incomplete: stopped before all objects were listed")
    click.echo(f"{file}: {_summary(recorder)}", err=True)
    return 0


def _summary(recorder: "ClusterRecorder") -> str:
    from moorage.api import texts

    changes = recorder.changes.total()
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in recorder.changes.most_common())
    counted = f"{texts.count(changes, 'change')} ({kinds})" if kinds else "no change"
    objects = texts.count(recorder.objects, "object")
    return f"{objects} at the start, {counted} in {recorder.seconds:.0f} s"
