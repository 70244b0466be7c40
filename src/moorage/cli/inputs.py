"""The objects that commands read: from files, or from a live cluster."""

import gc
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from moorage import garbage, terminal
from moorage.cli import documents, options
from moorage.cli.progress import StatusLine
from moorage.errors import InputError, ManifestError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.api.config import SchedulerConfiguration, Source
    from moorage.api.manifests import Manifest, Validate
    from moorage.api.meta import KubeObject
    from moorage.api.pod import Pod
    from moorage.live.connection import Connection
    from moorage.scenarios.plan import ScenarioPlan

# What was printed about the input, so that nothing is printed twice.
REMARKS = "moorage.remarks"
# Reading so much takes longer than a second.
LARGE_BYTES = 10_000_000
FETCH_SECONDS = 30
MOST_FETCHED = 256 * 2**20


def cluster(paths: "Iterable[str]") -> "Manifest":
    """Everything in these files; a status line appears if it takes a while.

    Nodes get what a kubelet would set. Warnings and notes go to standard error.
    """
    from moorage.api import manifests
    from moorage.cli import cautions
    from moorage.expansion import node_defaults

    gc.set_threshold(*garbage.THRESHOLDS)
    paths = list(paths)
    size = sum(map(_size, paths))
    with StatusLine("reading") as status, garbage.not_collected():
        if size > LARGE_BYTES:
            status.say_at_once(f"{size / 1e6:,.0f} MB")
        found = manifests.load(paths, validate(), fetch, _read_by_options())
        if size > LARGE_BYTES:
            # The objects live as long as the command: looking at them takes long, even once.
            gc.freeze()
    found.objects, note = node_defaults.complete(found.objects)
    found.notes += [note] if note else []
    cautions.assume_priorities(found)
    found.warnings += cautions.not_applied(found)
    found.warnings += cautions.not_counted(found)
    found.warnings += cautions.unknown_runtime_classes(found)
    found.warnings += cautions.never_run(found)
    remark(found)
    return found


def plain_documents(paths: "Iterable[str]") -> "list[tuple[str, dict[str, Any]]]":
    """The same as plain data of all kinds, for `serve`."""
    from moorage.api import manifests
    from moorage.expansion import node_defaults

    found, manifest = manifests.load_whole(paths, validate(), fetch, _read_by_options())
    if note := node_defaults.complete_documents(found):
        manifest.notes.append(note)
    remark(manifest)
    return found


def validate() -> "Validate":
    """The value of --validate."""
    value: Validate = click.get_current_context().meta.get(options.VALIDATE, "strict")
    return value


def _read_by_options() -> set[Path]:
    """Files that this command reads as something else: they are no objects of a folder."""
    given = click.get_current_context().params
    named = [given.get(name) for name in ("config_file", "price_file", "file")]
    named += given.get("configs") or ()
    return {Path(each).resolve() for each in named if isinstance(each, str)}


def remark(manifest: "Manifest | ScenarioPlan") -> None:
    """Print the warnings and notes about what was read."""
    from moorage.cli import cautions

    warn(manifest.warnings)
    if manifest.unread_workloads:
        objects = getattr(manifest, "everything", manifest.objects)
        unread = cautions.without_children(manifest.unread_workloads, objects)
        click.get_current_context().meta.setdefault(documents.UNREAD, []).extend(unread)
        warn(cautions.without_pods(unread))
    _remark("note", manifest.notes)


def warn(warnings: "Iterable[str]") -> None:
    """Print warnings, and keep them for the JSON document."""
    kept = click.get_current_context().meta.setdefault(documents.WARNINGS, [])
    kept += _remark("warning", warnings)


def _remark(what: str, texts: "Iterable[str]") -> list[str]:
    """Print texts to standard error, each once; returns those that are new."""
    said = click.get_current_context().meta.setdefault(REMARKS, {})
    lines = dict.fromkeys(terminal.visible(" ".join(text.split())) for text in texts)
    new = [line for line in lines if (what, line) not in said]
    for line in new:
        click.echo(f"moorage: {what}: {line}", err=True)
        said[what, line] = None
    return new


def configuration(source: "Source") -> "SchedulerConfiguration":
    """The scheduler's configuration of a question; a warning says what of it has no effect."""
    from moorage.api import config
    from moorage.cli import cautions

    found = config.load(source)
    warn(cautions.not_called(found))
    return found


def fetch(url: str) -> bytes:
    """The file at an HTTP or HTTPS address."""
    import http.client
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=FETCH_SECONDS) as response:
            found: bytes = response.read(MOST_FETCHED + 1)
    except (OSError, ValueError, http.client.HTTPException) as error:
        status = f"HTTP {code} " if (code := getattr(error, "code", "")) else ""
        reason = getattr(error, "reason", None) or error
        raise ManifestError(f"{url}: {status}{reason}") from None
    if len(found) > MOST_FETCHED:
        raise ManifestError(f"{url}: is larger than {MOST_FETCHED // 2**20} MiB")
    return found


def _size(path: str) -> int:
    """The size of a file or folder in bytes; 0 if it does not exist."""
    found = Path(path)
    files = found.rglob("*") if found.is_dir() else [found]
    return sum(file.stat().st_size for file in files if file.is_file())


def pods(path: str, cluster: "Iterable[KubeObject]") -> "tuple[list[KubeObject], list[KubeObject]]":
    """The pods and workloads of a file, and the objects that come with them.

    Those are the classes, claims, claim templates and pod groups of the file that the cluster does
    not have.
    """
    from moorage.api import manifests
    from moorage.api.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate
    from moorage.api.pod import Pod
    from moorage.api.pod_groups import PodGroup, Workload
    from moorage.api.policy import PriorityClass
    from moorage.api.storage import PersistentVolumeClaim, StorageClass
    from moorage.api.workloads import DaemonSet
    from moorage.cli import cautions

    manifest = manifests.load([path], validate(), fetch)
    cautions.assume_priorities(manifest, cluster)
    manifest.warnings += cautions.not_applied(manifest)
    remark(manifest)
    found = manifest.everything
    makers = [obj for obj in found if isinstance(obj, Pod) or _makes_pods(obj)]
    if not makers:
        raise InputError(f"{path}: a Pod or a workload is expected, there is none")
    for obj in makers:
        problem = ""
        if isinstance(obj, DaemonSet):
            problem = "has one pod on each node, so no number of more pods; name another workload"
        elif getattr(getattr(obj, "spec", None), "replicas", None) == 0:
            problem = "has 0 replicas, so it has no pod; set 1"
        if problem:
            raise InputError(f"{manifest.location(obj)}: {problem}")
    known = {_identity(obj) for obj in cluster}
    devices = (ResourceClaim, ResourceClaimTemplate, DeviceClass)
    groups = (PodGroup, Workload)
    kinds = (PersistentVolumeClaim, StorageClass, PriorityClass, *groups, *devices)
    along: list[KubeObject] = [
        obj for obj in found if isinstance(obj, kinds) and _identity(obj) not in known
    ]
    return makers, along


def _identity(obj: "KubeObject") -> tuple[str, str, str]:
    return type(obj).__name__, obj.namespace or "default", obj.name


def _makes_pods(obj: "KubeObject") -> bool:
    from moorage.api.workloads import CronJob, PodTemplateSpec

    template = getattr(getattr(obj, "spec", None), "template", None)
    return isinstance(obj, CronJob) or isinstance(template, PodTemplateSpec)


# How many pods of schedulers are asked for their configuration.
MOST_SCHEDULERS = 5


class FoundConfiguration(NamedTuple):
    """A scheduler's configuration as plain data, and where it was read.

    A pod can be made by anyone who may create pods, so what it says must not run code here.
    """

    plain: dict[str, Any]
    source: str
    by_pod: bool


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """A cluster that more is read from than its objects."""

    connection: "Connection"

    @property
    def server(self) -> str:
        return self.connection.server

    def configuration(self, names: set[str], pods: "Iterable[Pod]") -> "FoundConfiguration | None":
        """The configuration of the scheduler of these names.

        `moorage serve` has it at /configz. Of a scheduler that runs as one of the pods, it is read
        through the API server, if that scheduler needs no authorization for /configz.
        """
        if (served := self._configz("/configz")) is not None:
            return FoundConfiguration(served, f"{self.server}/configz", by_pod=False)
        schedulers = [pod for pod in pods if pod.node_name and _is_scheduler(pod)]
        for pod in schedulers[:MOST_SCHEDULERS]:
            path = f"/api/v1/namespaces/{pod.namespace}/pods/https:{pod.name}:10259/proxy/configz"
            found = self._configz(path)
            if found is not None and names <= _scheduler_names(found):
                return FoundConfiguration(found, f"/configz of pod {pod.key}", by_pod=True)
        return None

    def _configz(self, path: str) -> dict[str, Any] | None:
        from moorage.live import listing

        config = (listing.read_document(self.connection, path, tries=1) or {}).get(
            "componentconfig"
        )
        is_known = isinstance(config, dict) and config.get("kind") == "KubeSchedulerConfiguration"
        return config if is_known else None

    def events(self, pod: "Pod") -> list[dict[str, Any]]:
        """The Events of a pod; empty if they may not be read."""
        from moorage.live import listing, paths

        path = paths.query(
            f"/api/v1/namespaces/{pod.namespace}/events",
            fieldSelector=f"involvedObject.kind=Pod,involvedObject.name={pod.name}",
        )
        found = listing.read_document(self.connection, path) or {}
        return [
            each
            for each in found.get("items") or ()
            if isinstance(each, dict)
            and (each.get("involvedObject") or {}).get("uid") in (None, "", pod.uid)
        ]


def _scheduler_names(config: dict[str, Any]) -> set[str]:
    profiles = config.get("profiles")
    found = profiles if isinstance(profiles, list) else []
    return {str(each.get("schedulerName")) for each in found if isinstance(each, dict)}


def _is_scheduler(pod: "Pod") -> bool:
    """Whether a pod has the labels of `deploy/base`, or of kube-scheduler with kubeadm."""
    labels = pod.labels
    return labels.get("app.kubernetes.io/name") == "moorage" or (
        labels.get("component") == "kube-scheduler"
    )


def files_or_cluster(
    paths: tuple[str, ...], kubeconfig: str | None, context: str | None, files: str = "-f PATH"
) -> "tuple[Manifest, LiveCluster | None]":
    """The objects of files, or of a live cluster: the named one, or that of kubectl.

    `files` is how the command names files.
    """
    from moorage.live import kubeconfig as kubeconfigs

    names_cluster = kubeconfig is not None or context is not None
    if names_cluster and paths:
        raise click.UsageError(
            f"Name files ({files}) or a cluster (--kubeconfig, --context), not both."
        )
    if paths:
        return cluster(paths), None
    if names_cluster or kubeconfigs.is_set():
        connection = kubeconfigs.find(kubeconfig, context=context)
        return _read(connection), LiveCluster(connection)
    raise click.UsageError(
        f"Name the input: {files} or, for a live cluster, --kubeconfig FILE or $KUBECONFIG."
    )


def live_cluster(kubeconfig: str | None, context: str | None) -> "Manifest":
    """The objects of a live cluster; kinds that may not be read are named on standard error."""
    from moorage.live import kubeconfig as kubeconfigs

    return _read(kubeconfigs.find(kubeconfig, context=context))


def _read(connection: "Connection") -> "Manifest":
    from moorage.api.manifests import Manifest
    from moorage.live import listing

    found = listing.read_cluster(connection)
    for plural, why in found.unserved.items():
        click.echo(
            f"moorage: {plural} left out: {terminal.visible(' '.join(why.split()))}", err=True
        )
    return Manifest(objects=found.objects)
