"""Every metric that is counted: names, labels and buckets are kube-scheduler's; ours come last."""

from collections.abc import Iterator

from moorage.metrics.tallies import CounterMetric, Histogram, Tally, exponential

ATTEMPT = exponential(0.001, 2, 15)
POINT = exponential(0.0001, 2, 12)
PLUGIN = exponential(0.00001, 1.5, 20)
REQUEST = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class Families:
    """The tallies of one scheduler."""

    def __init__(self) -> None:
        self.schedule_attempts = CounterMetric(
            "scheduler_schedule_attempts_total",
            "Number of attempts to schedule pods, by the result.",
            ("result", "profile"),
        )
        self.attempt_duration = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding).",
            ATTEMPT,
            ("result", "profile"),
        )
        self.algorithm_duration = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds.",
            ATTEMPT,
        )
        self.pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            exponential(1, 2, 5),
        )
        self.pod_duration = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Latency of a pod being scheduled, from the time it entered the scheduling queue.",
            exponential(0.01, 2, 20),
            ("attempts",),
        )
        self.queue_incoming = CounterMetric(
            "scheduler_queue_incoming_pods_total",
            "Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
        )
        self.preemption_attempts = CounterMetric(
            "scheduler_preemption_attempts_total",
            "Total preemption attempts in the cluster till now.",
        )
        self.preemption_victims = Histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims.",
            exponential(1, 2, 7),
        )
        self.permit_wait = Histogram(
            "scheduler_permit_wait_duration_seconds",
            "Duration of waiting on permit.",
            ATTEMPT,
            ("result",),
        )
        self.after_flush = CounterMetric(
            "scheduler_pod_scheduled_after_flush_total",
            "Pods scheduled after being flushed from the unschedulable pods due to timeout.",
        )
        self.point_duration = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            POINT,
            ("extension_point", "status", "profile"),
        )
        self.plugin_duration = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point; a tenth of the cycles is "
            "measured, ten per second at most.",
            PLUGIN,
            ("plugin", "extension_point", "status"),
        )
        self.plugin_evaluation = CounterMetric(
            "scheduler_plugin_evaluation_total",
            "Number of attempts to schedule pods by each plugin and the extension point.",
            ("plugin", "extension_point", "profile"),
        )
        self.event_handling = Histogram(
            "scheduler_event_handling_duration_seconds",
            "Event handling latency in seconds.",
            POINT,
            ("event",),
        )
        self.claim_creates = CounterMetric(
            "scheduler_resourceclaim_creates_total",
            "Number of ResourceClaims creation requests within scheduler",
            ("status",),
        )
        self.binding_conditions_allocations = CounterMetric(
            "scheduler_dra_bindingconditions_allocations_total",
            "Number of allocations using devices with BindingConditions, counted per driver per "
            "scheduling attempt",
            ("profile", "driver", "status"),
        )
        self.binding_conditions_wait = Histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "Time in seconds spent waiting for BindingConditions to be satisfied during PreBind.",
            exponential(0.1, 2, 14),
            ("profile", "driver", "status"),
        )
        self.group_attempts = CounterMetric(
            "scheduler_podgroup_schedule_attempts_total",
            "Number of attempts to schedule pod groups, by the result.",
            ("result", "profile"),
        )
        self.group_duration = Histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "Pod group scheduling attempt latency in seconds (scheduling algorithm + submission).",
            ATTEMPT,
            ("result", "profile"),
        )
        self.group_algorithm_duration = Histogram(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds",
            "Pod group scheduling algorithm latency in seconds.",
            ATTEMPT,
        )
        self.requests = CounterMetric(
            "rest_client_requests_total",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "method", "host"),
        )
        self.request_duration = Histogram(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host.",
            REQUEST,
            ("verb", "host"),
        )
        # Ours.
        self.verb_duration = Histogram(
            "moorage_core_duration_seconds",
            "How long one call of the core takes: observe, schedule_one, complete, advance.",
            POINT,
            ("verb",),
        )
        self.view_lookups = CounterMetric(
            "moorage_view_lookups_total",
            "Cycles by whether cached results of equal pods were used (hit) or not (miss).",
            ("profile", "result"),
        )
        self.rebuilds = CounterMetric(
            "moorage_view_rebuilds_total",
            "Cycles in which verdicts were combined for all nodes, not only for changed ones.",
            ("profile",),
        )

    def __iter__(self) -> Iterator[Tally]:
        return iter(vars(self).values())
