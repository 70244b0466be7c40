"""Plans from Alibaba's GPU trace of 2023 (`openb_pod_list`, `openb_node_list`).

    nodes   sn, cpu_milli, memory_mib, gpu, model
    pods    name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec, qos, pod_phase,
            creation_time, deletion_time, scheduled_time
            job, queue (not in the public trace): pods of one job are a gang; the queue of a pod

Pods may share a GPU: `gpu_milli` is the part of it, in thousandths. GPUs are one extended resource
here, counted in thousandths as well, so that a node's GPUs count as one large one; whether parts
fit the single cards is not checked. Times are seconds and begin with the first creation.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from moorage.api.meta import KubeObject, LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from moorage.api.pod import Affinity, NodeAffinity, Pod
from moorage.api.queues import QUEUE_LABEL
from moorage.errors import InputError
from moorage.scenarios import trace_rows
from moorage.scenarios.plan import Arrival, ScenarioPlan, TraceArrivals
from moorage.scenarios.trace_rows import Amounts, CsvRow

GPU_MILLI = "alibabacloud.com/gpu-milli"
GPU_MODEL = "alibabacloud.com/gpu-card-model"
QOS = "alibabacloud.com/qos"
WHOLE = 1000

POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "creation_time")
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib")


def load(pods: str | Path, nodes: str | Path | None = None, *, seed: int = 0) -> ScenarioPlan:
    """The plan of a trace; without nodes they have to come from elsewhere."""
    objects = [_node(row) for row in trace_rows.read(nodes, NODE_COLUMNS)] if nodes else []
    rows = list(trace_rows.read(pods, POD_COLUMNS))
    if not rows:
        raise InputError(f"{pods}: holds no pods")
    first = min(row.number("creation_time") for row in rows)
    templates: dict[tuple[str, ...], Pod] = {}
    jobs = Counter(row.text("job") for row in rows)
    arrivals = sorted(
        (_arrival(row, first, templates, jobs) for row in rows), key=lambda arrival: arrival.at
    )
    return ScenarioPlan.of_trace(pods, TraceArrivals("pod", tuple(arrivals)), objects, seed)


def _node(row: CsvRow) -> KubeObject:
    name = row.text("sn")
    if not name:
        raise InputError(f"{row.where}, sn: is empty")
    labels: dict[str, str] = {}
    offered: Amounts = {
        "cpu": f"{row.amount('cpu_milli'):.0f}m",
        "memory": f"{row.amount('memory_mib'):.0f}Mi",
    }
    gpus = int(row.amount("gpu", 0))
    if gpus:
        offered[GPU_MILLI] = str(gpus * WHOLE)
        labels[GPU_MODEL] = row.text("model") or "unknown"
    return trace_rows.make_node(name, offered, labels)


def _arrival(
    row: CsvRow, first: float, templates: dict[tuple[str, ...], Pod], jobs: Mapping[str, int]
) -> Arrival:
    created = row.number("creation_time")
    # A pod that was never scheduled in the trace runs from its creation.
    started = row.time("scheduled_time")
    deleted = row.time("deletion_time")
    seconds = None
    if deleted is not None:
        seconds = max(0.0, deleted - max(created, started or created))
    job = row.text("job")
    return Arrival(
        created - first,
        _pod(row, templates),
        seconds,
        replace=True,
        name=row.text("name"),
        gang=job,
        gang_size=jobs[job] if job else 0,
    )


def _pod(row: CsvRow, templates: dict[tuple[str, ...], Pod]) -> Pod:
    """The template of a pod; equal pods share one."""
    gpus = int(row.amount("num_gpu", 0))
    part = row.amount("gpu_milli", WHOLE) if gpus else 0
    shape = (
        f"{row.amount('cpu_milli'):.0f}m",
        f"{row.amount('memory_mib'):.0f}Mi",
        f"{gpus * part:.0f}",
        row.text("gpu_spec"),
        row.text("qos"),
        row.text("queue"),
    )
    if shape not in templates:
        templates[shape] = _template(*shape)
    return templates[shape]


def _template(cpu: str, memory: str, gpu: str, models: str, qos: str, queue: str) -> Pod:
    requested: Amounts = {"cpu": cpu, "memory": memory}
    if gpu != "0":
        requested[GPU_MILLI] = gpu
    affinity = _on_models(tuple(models.split("|"))) if models and gpu != "0" else None
    labels = {QOS: qos} if qos else {}
    if queue:
        labels[QUEUE_LABEL] = queue
    return trace_rows.make_template("pod", requested, labels=labels, affinity=affinity)


def _on_models(models: tuple[str, ...]) -> Affinity:
    expression = LabelSelectorRequirement(key=GPU_MODEL, operator="In", values=models)
    term = NodeSelectorTerm(match_expressions=(expression,))
    required = NodeSelector(node_selector_terms=(term,))
    return Affinity(
        node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required)
    )
