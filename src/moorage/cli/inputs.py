"""What questions are asked about: clusters, single pods, node templates, from files."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.api.manifests import Manifest
    from moorage.api.meta import KubeObject


def cluster(paths: "Iterable[str]") -> "Manifest":
    """Everything in these files."""
    from moorage.api import manifests

    return manifests.load(paths)


def pod(path: str) -> "KubeObject":
    """The one pod of a file, or the one workload whose pods are meant."""
    from moorage.api import manifests
    from moorage.api.pod import Pod
    from moorage.errors import InputError

    found = manifests.load([path]).everything
    makers = [obj for obj in found if isinstance(obj, Pod) or _makes_pods(obj)]
    if len(makers) != 1:
        number = len(makers) or "none"
        raise InputError(f"{path}: one Pod or one workload is expected, there are {number}")
    return makers[0]


def _makes_pods(obj: "KubeObject") -> bool:
    return getattr(getattr(obj, "spec", None), "template", None) is not None
