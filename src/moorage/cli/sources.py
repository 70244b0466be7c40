"""Where a command gets its objects from: files, or a live cluster."""

import os

import click

from moorage.api.manifests import Manifest
from moorage.cli import inputs


def read(paths: tuple[str, ...], kubeconfig: str | None, context: str | None) -> Manifest:
    """The objects of files, or of a cluster; of $KUBECONFIG's where none of them is named."""
    wants_cluster = kubeconfig is not None or context is not None
    if wants_cluster and paths:
        raise click.UsageError("Name files (-f) or a cluster (--kubeconfig, --context), not both.")
    if paths:
        return inputs.cluster(paths)
    if wants_cluster or os.environ.get("KUBECONFIG"):
        return from_cluster(kubeconfig, context)
    raise click.UsageError(
        "Name the input: -f PATH or, for a live cluster, --kubeconfig FILE or $KUBECONFIG."
    )


def from_cluster(kubeconfig: str | None, context: str | None) -> Manifest:
    """The objects of a live cluster; what may not be read is mentioned on standard error."""
    from moorage.live import kubeconfig as ways
    from moorage.live import listing

    found = listing.read_cluster(ways.find(kubeconfig, context=context))
    for plural, why in found.unserved.items():
        click.echo(f"moorage: {plural} left out: {' '.join(why.split())}", err=True)
    return Manifest(objects=found.objects)
