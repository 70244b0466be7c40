"""What questions are asked about: clusters, single pods, node templates, from files."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.api.manifests import Manifest
    from moorage.api.meta import KubeObject


# Reading so much takes longer than a second.
LARGE_BYTES = 10_000_000


def cluster(paths: "Iterable[str]") -> "Manifest":
    """Everything in these files; says so on a terminal if it takes a while."""
    from moorage.api import manifests
    from moorage.cli.progress import StatusLine

    paths = list(paths)
    size = sum(map(_size, paths))
    with StatusLine("reading") as status:
        if size > LARGE_BYTES:
            status.say_at_once(f"{size / 1e6:,.0f} MB")
        return manifests.load(paths)


def _size(path: str) -> int:
    """How many bytes a file or a folder has; none that is known of what is not there."""
    from pathlib import Path

    found = Path(path)
    files = found.rglob("*") if found.is_dir() else [found]
    return sum(file.stat().st_size for file in files if file.is_file())


def pod(path: str, cluster: "Iterable[KubeObject]") -> "tuple[KubeObject, list[KubeObject]]":
    """The one pod of a file, or the one workload whose pods are meant, and what comes along.

    That is what a pod refers to: classes and claims of the file that the cluster does not have.
    """
    from moorage.api import manifests
    from moorage.api.pod import Pod
    from moorage.api.policy import PriorityClass
    from moorage.api.storage import PersistentVolumeClaim, StorageClass
    from moorage.errors import InputError

    found = manifests.load([path]).everything
    makers = [obj for obj in found if isinstance(obj, Pod) or _makes_pods(obj)]
    if len(makers) != 1:
        number = len(makers) or "none"
        raise InputError(f"{path}: one Pod or one workload is expected, there are {number}")
    there = {_identity(obj) for obj in cluster}
    kinds = (PersistentVolumeClaim, StorageClass, PriorityClass)
    along: list[KubeObject] = [
        obj for obj in found if isinstance(obj, kinds) and _identity(obj) not in there
    ]
    return makers[0], along


def _identity(obj: "KubeObject") -> tuple[str, str, str]:
    return type(obj).__name__, obj.namespace or "default", obj.name


def _makes_pods(obj: "KubeObject") -> bool:
    from moorage.api.workloads import CronJob, PodTemplateSpec

    template = getattr(getattr(obj, "spec", None), "template", None)
    return isinstance(obj, CronJob) or isinstance(template, PodTemplateSpec)
