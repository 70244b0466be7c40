"""Plans from Alibaba's GPU trace of 2023 (`openb_pod_list`, `openb_node_list`).

    nodes   sn, cpu_milli, memory_mib, gpu, model
    pods    name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec, qos, pod_phase,
            creation_time, deletion_time, scheduled_time

Pods may share a GPU: `gpu_milli` is the part of it, in thousandths. GPUs are one extended resource
here, counted in thousandths as well, so that a node's GPUs are taken for one large one; whether
parts fit the single cards is not looked at. Times are seconds and begin with the first creation.
"""

from pathlib import Path

from moorage.api.meta import (
    KubeObject,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorTerm,
    ObjectMeta,
)
from moorage.api.node import Node, NodeStatus
from moorage.api.pod import (
    Affinity,
    Container,
    NodeAffinity,
    Pod,
    PodSpec,
    ResourceRequirements,
)
from moorage.api.quantity import Quantity
from moorage.errors import InputError
from moorage.scenarios import csv_rows
from moorage.scenarios.csv_rows import CsvRow
from moorage.scenarios.plan import Arrival, ScenarioPlan, TraceArrivals

GPU_MILLI = "alibabacloud.com/gpu-milli"
GPU_MODEL = "alibabacloud.com/gpu-card-model"
HOST_NAME = "kubernetes.io/hostname"
QOS = "alibabacloud.com/qos"
WHOLE = 1000
MOST_PODS = "1000"  # The trace does not say; large enough not to matter.

POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "creation_time")
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib")


def load(pods: str | Path, nodes: str | Path | None = None, *, seed: int = 0) -> ScenarioPlan:
    """The plan of a trace; without nodes they have to come from elsewhere."""
    objects = [_node(row) for row in csv_rows.read(nodes, NODE_COLUMNS)] if nodes else []
    rows = list(csv_rows.read(pods, POD_COLUMNS))
    if not rows:
        raise InputError(f"{pods}: holds no pods")
    first = min(row.number("creation_time") for row in rows)
    templates: dict[tuple[str, ...], Pod] = {}
    arrivals = sorted(
        (_arrival(row, first, templates) for row in rows), key=lambda arrival: arrival.at
    )
    return ScenarioPlan.of_trace(pods, TraceArrivals("pod", tuple(arrivals)), objects, seed)


def _node(row: CsvRow) -> KubeObject:
    name = row.text("sn")
    if not name:
        raise InputError(f"{row.where}, sn: is empty")
    labels = {HOST_NAME: name}
    offered: dict[str, Quantity] = {
        "cpu": f"{row.amount('cpu_milli'):.0f}m",
        "memory": f"{row.amount('memory_mib'):.0f}Mi",
        "pods": MOST_PODS,
    }
    gpus = int(row.amount("gpu", 0))
    if gpus:
        offered[GPU_MILLI] = str(gpus * WHOLE)
        labels[GPU_MODEL] = row.text("model") or "unknown"
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, labels=labels),
        status=NodeStatus(allocatable=offered),
    )


def _arrival(row: CsvRow, first: float, templates: dict[tuple[str, ...], Pod]) -> Arrival:
    created = row.number("creation_time")
    # A pod that was never scheduled there has no time of its own to run; it runs from creation.
    started = row.time("scheduled_time")
    deleted = row.time("deletion_time")
    seconds = None
    if deleted is not None:
        seconds = max(0.0, deleted - max(created, started or created))
    pod = _pod(row, templates)
    return Arrival(created - first, pod, seconds, replace=True, name=row.text("name"))


def _pod(row: CsvRow, templates: dict[tuple[str, ...], Pod]) -> Pod:
    """Pods that are alike share one template."""
    gpus = int(row.amount("num_gpu", 0))
    part = row.amount("gpu_milli", WHOLE) if gpus else 0
    shape = (
        f"{row.amount('cpu_milli'):.0f}m",
        f"{row.amount('memory_mib'):.0f}Mi",
        f"{gpus * part:.0f}",
        row.text("gpu_spec"),
        row.text("qos"),
    )
    if shape not in templates:
        templates[shape] = _template(*shape)
    return templates[shape]


def _template(cpu: str, memory: str, gpu: str, models: str, qos: str) -> Pod:
    wanted: dict[str, Quantity] = {"cpu": cpu, "memory": memory}
    if gpu != "0":
        wanted[GPU_MILLI] = gpu
    container = Container(name="main", resources=ResourceRequirements(requests=wanted))
    affinity = _on_models(tuple(models.split("|"))) if models and gpu != "0" else None
    return Pod(
        api_version="v1",
        kind="Pod",
        metadata=ObjectMeta(name="pod", labels={QOS: qos} if qos else {}),
        spec=PodSpec(containers=(container,), affinity=affinity),
    )


def _on_models(models: tuple[str, ...]) -> Affinity:
    expression = LabelSelectorRequirement(key=GPU_MODEL, operator="In", values=models)
    term = NodeSelectorTerm(match_expressions=(expression,))
    required = NodeSelector(node_selector_terms=(term,))
    return Affinity(
        node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required)
    )
