"""`moorage snapshot`: a live cluster as a file that the other commands read."""

from pathlib import Path
from typing import Any

import click

from moorage.cli import inputs, options
from moorage.errors import InputError


@click.command(short_help="Write a live cluster to a file that simulate and explain read.")
@options.cluster
@click.option(
    "-o",
    "--output",
    "file",
    metavar="FILE",
    default="-",
    help="Where to write: .yaml and .yml get YAML, anything else JSON; - is standard output.",
)
def snapshot(kubeconfig: str | None, context: str | None, file: str) -> None:
    """Write a live cluster to a file that simulate and explain read.

    The file has the fields that scheduling reads: no environment variables, no commands, no
    secrets. The cluster is only read. Pods that have ended are not included.
    """
    from moorage.api import texts

    manifest = inputs.live_cluster(kubeconfig, context)
    text = _text(manifest.objects, is_yaml=file.endswith((".yaml", ".yml")))
    if file == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(file).write_bytes(text)
    except OSError as error:
        raise InputError(f"{file}: {(error.strerror or str(error)).lower()}") from None
    click.echo(f"{file}: {texts.count(len(manifest.objects), 'object')}", err=True)


def _text(objects: list[Any], *, is_yaml: bool) -> bytes:
    import msgspec

    from moorage.api import documents

    document = {"apiVersion": "v1", "kind": "List", "items": objects}
    encoded = msgspec.json.encode(document)
    if is_yaml:
        return documents.as_yaml(msgspec.json.decode(encoded)).encode()
    return msgspec.json.format(encoded, indent=1) + b"\n"
