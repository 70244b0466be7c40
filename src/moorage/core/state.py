"""SchedulerState: what the parts of a scheduler share.

`Scheduler` makes one. Failures, Bindings, Preemptions, EventHandlers and Confirmations take it,
and the earlier of these parts that they call.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from moorage.api import config
from moorage.api.config import feature_gates
from moorage.api.pod import Pod
from moorage.core import profiles
from moorage.core.cache import Cache
from moorage.core.effects import Outbox
from moorage.core.extenders import ExtenderClient, Extenders, RunCalls, sequentially
from moorage.core.journal import Journal
from moorage.core.nominator import Nominator
from moorage.core.pod_groups import GroupCache
from moorage.core.queue import SchedulingQueue
from moorage.framework.cluster import Cluster
from moorage.framework.profile import Profile
from moorage.framework.registry import Registry
from moorage.nodes.pod_groups import PodGroupMembers
from moorage.nodes.template import PodTemplate, Templates


@dataclass(slots=True)
class PodLookups:
    """Pods (by UID) whose binding is uncertain: when to look each up, and lookups in progress."""

    _due: dict[str, float] = field(default_factory=dict)
    _started: set[str] = field(default_factory=set)

    def schedule(self, uid: str, at: float) -> None:
        """Look a pod up at a time, unless a lookup is scheduled earlier or in progress."""
        if uid not in self._started:
            self._due.setdefault(uid, at)

    def start_due(self, now: float) -> list[str]:
        """The pods to look up now; their lookups count as in progress from here on."""
        uids = [uid for uid, at in self._due.items() if at <= now]
        for uid in uids:
            del self._due[uid]
            self._started.add(uid)
        return uids

    def finish(self, uid: str) -> None:
        """A lookup ended, with a result or without."""
        self._started.discard(uid)

    def cancel(self, uid: str) -> None:
        """Drop a scheduled lookup, if there is one."""
        self._due.pop(uid, None)

    def __contains__(self, uid: str) -> bool:
        return uid in self._due or uid in self._started

    @property
    def deadline(self) -> float | None:
        """When the next lookup is due."""
        return min(self._due.values(), default=None)


@dataclass(slots=True, eq=False)
class QueuedTemplates:
    """The templates of pods, most of which wait and have theirs in the queue."""

    queue: SchedulingQueue
    templates: Templates

    def of(self, pod: Pod) -> PodTemplate:
        """The template of a pod."""
        entry = self.queue.find(pod.key)
        if entry is None or entry.pod is not pod:
            return self.templates.of(pod)
        if entry.template is None:
            entry.template = self.templates.of(pod)
        return entry.template


@dataclass(slots=True, eq=False)
class SchedulerState:
    """See the module."""

    cluster: Cluster
    profiles: dict[str, Profile]
    templates: Templates
    cache: Cache
    queue: SchedulingQueue
    nominator: Nominator
    journal: Journal
    # All pods that were observed and are not gone, by namespace/name.
    pods: dict[str, Pod]
    extenders: Extenders | None = None
    outbox: Outbox = field(default_factory=Outbox)
    lookups: PodLookups = field(default_factory=PodLookups)

    @classmethod
    def of(
        cls,
        settings: config.SchedulerConfiguration,
        registry: Registry,
        journal: Journal,
        clients: Sequence[ExtenderClient] = (),
        at_once: RunCalls = sequentially,
    ) -> "SchedulerState":
        """The state of a scheduler that has observed nothing yet."""
        cluster, templates = Cluster(), Templates()
        made = profiles.build(settings, registry, cluster)
        extenders = None
        if clients:
            extenders = Extenders(clients, cluster, at_once)
            extenders.register(made.values())
        pods: dict[str, Pod] = {}
        nominator = Nominator(pods, cluster)
        queue = SchedulingQueue(
            made,
            journal=journal,
            nominator=nominator,
            initial_backoff_seconds=settings.pod_initial_backoff_seconds,
            max_backoff_seconds=settings.pod_max_backoff_seconds,
        )
        cache = Cache(cluster.table, templates)
        if cluster.has_feature(feature_gates.GENERIC_WORKLOAD):
            groups = cluster.pod_groups = PodGroupMembers()
            cache = GroupCache(cluster.table, templates, groups)
        return cls(cluster, made, templates, cache, queue, nominator, journal, pods, extenders)

    def is_ours(self, pod: Pod) -> bool:
        """Whether one of the profiles schedules a pod."""
        return pod.spec.scheduler_name in self.profiles

    def prepared_template(self, pod: Pod) -> PodTemplate:
        """The template of a new pod, prepared by the plugins of its profile."""
        template = self.templates.of(pod)
        self.profiles[pod.spec.scheduler_name].prepare(template)
        return template

    def current(self, pod: Pod) -> Pod | None:
        """The newest version of a pod; None if it is gone or replaced under its name."""
        known = self.pods.get(pod.key)
        is_same = known is not None and known.metadata.uid == pod.metadata.uid
        return known if is_same else None
