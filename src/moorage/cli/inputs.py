"""The objects that commands read: from files, or from a live cluster."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moorage.cli.progress import StatusLine
from moorage.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.api.manifests import Manifest
    from moorage.api.meta import KubeObject

# Reading so much takes longer than a second.
LARGE_BYTES = 10_000_000


def cluster(paths: "Iterable[str]") -> "Manifest":
    """Everything in these files; a status line appears if it takes a while."""
    from moorage.api import manifests

    paths = list(paths)
    size = sum(map(_size, paths))
    with StatusLine("reading") as status:
        if size > LARGE_BYTES:
            status.say_at_once(f"{size / 1e6:,.0f} MB")
        return manifests.load(paths)


def _size(path: str) -> int:
    """The size of a file or folder in bytes; 0 if it does not exist."""
    found = Path(path)
    files = found.rglob("*") if found.is_dir() else [found]
    return sum(file.stat().st_size for file in files if file.is_file())


def pod(path: str, cluster: "Iterable[KubeObject]") -> "tuple[KubeObject, list[KubeObject]]":
    """The one pod or workload of a file, and the objects that come with it.

    Those are the classes and claims of the file that the cluster does not have.
    """
    from moorage.api import manifests
    from moorage.api.pod import Pod
    from moorage.api.policy import PriorityClass
    from moorage.api.storage import PersistentVolumeClaim, StorageClass

    found = manifests.load([path]).everything
    makers = [obj for obj in found if isinstance(obj, Pod) or _makes_pods(obj)]
    if len(makers) != 1:
        number = len(makers) or "none"
        raise InputError(f"{path}: one Pod or one workload is expected, there are {number}")
    known = {_identity(obj) for obj in cluster}
    kinds = (PersistentVolumeClaim, StorageClass, PriorityClass)
    along: list[KubeObject] = [
        obj for obj in found if isinstance(obj, kinds) and _identity(obj) not in known
    ]
    return makers[0], along


def _identity(obj: "KubeObject") -> tuple[str, str, str]:
    return type(obj).__name__, obj.namespace or "default", obj.name


def _makes_pods(obj: "KubeObject") -> bool:
    from moorage.api.workloads import CronJob, PodTemplateSpec

    template = getattr(getattr(obj, "spec", None), "template", None)
    return isinstance(obj, CronJob) or isinstance(template, PodTemplateSpec)


def files_or_cluster(
    paths: tuple[str, ...], kubeconfig: str | None, context: str | None
) -> "Manifest":
    """The objects of files, or of a live cluster: the named one, or that of $KUBECONFIG."""
    names_cluster = kubeconfig is not None or context is not None
    if names_cluster and paths:
        raise click.UsageError("Name files (-f) or a cluster (--kubeconfig, --context), not both.")
    if paths:
        return cluster(paths)
    if names_cluster or os.environ.get("KUBECONFIG"):
        return live_cluster(kubeconfig, context)
    raise click.UsageError(
        "Name the input: -f PATH or, for a live cluster, --kubeconfig FILE or $KUBECONFIG."
    )


def live_cluster(kubeconfig: str | None, context: str | None) -> "Manifest":
    """The objects of a live cluster; kinds that may not be read are named on standard error."""
    from moorage.api.manifests import Manifest
    from moorage.live import kubeconfig as kubeconfigs
    from moorage.live import listing

    found = listing.read_cluster(kubeconfigs.find(kubeconfig, context=context))
    for plural, why in found.unserved.items():
        click.echo(f"moorage: {plural} left out: {' '.join(why.split())}", err=True)
    return Manifest(objects=found.objects)
