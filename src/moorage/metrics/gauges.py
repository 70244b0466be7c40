"""Current values, read from the scheduler on request."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from moorage.core.queued_pod import QueuedPod
from moorage.core.scheduler import Scheduler
from moorage.version import __version__

QUEUES = ("active", "backoff", "unschedulable", "gated")
POD_POPPED = "PodPopped"


def read(scheduler: Scheduler) -> Iterator[Metric]:
    """The gauges of a scheduler."""
    counts = scheduler.queue.counts()
    yield _gauge(
        "scheduler_pending_pods",
        "Number of pending pods, by the queue type.",
        ("queue",),
        {(queue,): counts[queue] for queue in QUEUES},
    )
    yield _gauge(
        "scheduler_unschedulable_pods",
        "The number of unschedulable pods broken down by plugin name.",
        ("plugin", "profile"),
        _unschedulable(scheduler),
    )
    yield _gauge(
        "scheduler_inflight_events",
        "Number of events currently tracked in the scheduling queue.",
        ("event",),
        _in_flight(scheduler),
    )
    cache, table = scheduler.cache, scheduler.cluster.table
    yield _gauge(
        "scheduler_cache_size",
        "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
        ("type",),
        {
            ("nodes",): table.node_count,
            ("pods",): len(cache),
            ("assumed_pods",): cache.assumed_count,
        },
    )
    yield _gauge("moorage_node_table_rows", "Rows of the node table.", (), {(): table.capacity})
    yield _gauge("moorage_build_info", "Always 1.", ("version",), {(__version__,): 1})


def election(name: str, *, leads: bool) -> Metric:
    """Whether we lead."""
    return _gauge(
        "leader_election_master_status",
        "1 if the reporting system is master of the relevant lease, 0 if it is on stand-by.",
        ("name",),
        {(name,): int(leads)},
    )


def _unschedulable(scheduler: Scheduler) -> dict[tuple[str, ...], float]:
    counted: Counter[tuple[str, ...]] = Counter()
    only = next(iter(scheduler.profiles)) if len(scheduler.profiles) == 1 else None
    for plugin, entries in scheduler.queue.waiting_by_plugin():
        if only is not None:  # Then there may be tens of thousands, and nobody is looked at.
            counted[plugin, only] += len(entries)
        else:
            counted.update((plugin, entry.pod.spec.scheduler_name) for entry in entries)
    return dict(counted)


def _in_flight(scheduler: Scheduler) -> dict[tuple[str, ...], float]:
    counted: Counter[tuple[str, ...]] = Counter()
    for each in scheduler.queue.timeline():
        counted[POD_POPPED if isinstance(each, QueuedPod) else each.event.label,] += 1
    return dict(counted)


def _gauge(
    name: str, help_: str, labels: tuple[str, ...], values: dict[tuple[str, ...], float]
) -> Metric:
    family = GaugeMetricFamily(name, help_, labels=labels)
    for each, value in values.items():
        family.add_metric(each, value)
    return family
