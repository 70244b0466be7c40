"""What must hold in a simulation of the whole system, whatever the faults.

CheckedScheduler   after every call of the core: its invariants; it knows the pods and nodes that
                   it observed, in the latest versions; what it requests follows from them; pods
                   are tried in order; room of nominated pods is left to them; no victim is needless
NetworkChecks      of every request: nothing is sent after the renew deadline, the holder of the
                   lease alone binds pods, after it has listed everything; a lease is taken over
                   when it has expired; no pod is bound twice, no node has more pods than fit;
                   volumes and devices: see `claims`
check_end          when the faults are over: no pod waits that fits, the scheduler knows what is
                   in the cluster, and nothing is left in any queue
"""

from collections import Counter, defaultdict

import msgspec
from simulated.claims import ClaimChecks

from moorage import plugin as mp
from moorage.api.kinds import KINDS
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.server_requests import (
    BindPod,
    DeletePod,
    PatchClaim,
    PatchVolume,
    ReserveResourceClaim,
)
from moorage.cluster.resources import LEASES, NODES, PODS
from moorage.cluster.store import DELETED
from moorage.core.effects import Done, Failed
from moorage.core.journal import Decided, Journal, Popped, Preempting
from moorage.core.observations import Listed
from moorage.core.scheduler import Scheduler
from moorage.errors import InvariantError
from moorage.framework.registry import Registry
from moorage.sim.history import ContractViolation, HistoryChecker, shortage

# Plugins whose queueing hints cover every event that may help.
COMPLETE_HINTS = {
    "DefaultPreemption",
    "DynamicResources",
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "SchedulingGates",
    "TaintToleration",
    "VolumeBinding",
}
NODE = KINDS["Node"]
FENCED = ("bind", "create", "update", "patch", "delete")
UNFENCED_KINDS = ("events", "leases")
# With more objects, the core's own invariants are checked less often.
FEW_OBJECTS = 20
# How often a request may be repeated.
MOST_TRIES, SPARE_REQUESTS = 8, 20


class Hesitate:
    """Pods with the label `hesitate` wait on permit in vain; after a new node they try again."""

    name = "Hesitate"
    SECONDS = 2.0

    def permit(self, state, pod, node):
        return mp.wait(self.SECONDS) if "hesitate" in pod.labels else mp.SUCCESS

    def events_to_register(self):
        return {mp.ClusterEvent.NODE_ADD: None}


class RecentFacts(Journal):
    """A journal that also lists the facts of one call."""

    def __init__(self):
        super().__init__()
        self.recent = []

    def add(self, fact):
        super().add(fact)
        self.recent.append(fact)


class CheckedScheduler(Scheduler):
    """A scheduler whose calls are checked from outside."""

    def __init__(self, configuration, *, name, network, **options):
        super().__init__(configuration, journal=RecentFacts(), **options)
        self.name = name
        self._network = network
        self.history = HistoryChecker()
        self._calls = 0
        # The number of the call in which a node was added, and in which each pod was popped.
        self._added_at = 0
        self._popped_at = {}
        self._requested_at = {}  # When a binding was requested, by UID.

    def observe(self, observation, now):
        nodes = len(self.history.state.nodes)
        self.history.observe(observation)
        if len(self.history.state.nodes) > nodes:
            self._added_at = self._calls
        return self._checked(super().observe(observation, now))

    def complete(self, ticket, outcome, now):
        request = self.history._requested.get(ticket)
        if isinstance(request, BindPod):
            self._check_outcome(request, outcome)
        self.history.complete(ticket, outcome)
        return self._checked(super().complete(ticket, outcome, now))

    def advance(self, now):
        return self._checked(super().advance(now))

    def schedule_one(self, now):
        active = {e.uid: (-e.pod.priority, e.queued_at) for e in self.queue.dump()["active"]}
        self.journal.recent.clear()
        effects = super().schedule_one(now)
        decided = set()
        for fact in self.journal.recent:
            if isinstance(fact, Popped):
                self._popped_at[fact.uid] = self._calls
                self._check_order(active, fact)
            elif isinstance(fact, Decided):
                decided.add(fact.uid)
                self._check_nominated(fact)
            elif isinstance(fact, Preempting):
                self._check_victims(fact)
        return self._checked(effects, decided)

    def _check_outcome(self, request, outcome):
        """A binding that is reported done was performed; one that is reported failed was not."""
        bound, uid = self._network.bound, request.pod.uid
        if isinstance(outcome, Done) and bound.get(uid) != request.node:
            self.fail(uid, f"the binding of {request.pod.key} is reported done")
        binder, at = self._network.bound_by.get(uid, ("", 0.0))
        was_made = binder == self.name and at >= self._requested_at[uid]
        if isinstance(outcome, Failed) and was_made:
            self.fail(uid, f"the binding of {request.pod.key} is reported failed, and was made")

    def _checked(self, effects, decided=frozenset()):
        try:
            self.history.check_effects(effects, decided.__contains__, checks_room=True)
        except ContractViolation as violation:
            self.fail(violation.uid, violation.text)
        for effect in effects:
            if isinstance(effect.request, BindPod):
                self._requested_at[effect.request.pod.uid] = self._network.now()
        self._calls += 1
        self._check_in_flight()
        self._check_known()
        state = self.history.state
        if self._calls % (1 + (len(state.nodes) + len(state.pods)) // FEW_OBJECTS) == 0:
            self.check_invariants()
        return effects

    def _check_order(self, active, fact):
        """Of the pods that are ready, the most important is tried; of equals, the oldest."""
        if fact.uid in active and active[fact.uid] != min(active.values()):
            self.fail(fact.uid, f"{fact.pod} was tried out of order")

    def _check_known(self):
        """The core knows what was observed: nothing older, nothing that is gone."""
        state, table = self.history.state, self.cluster.table
        nodes = {node.name: node for node in table.nodes if node is not None}
        both = (self._state.pods, state.pods), (nodes, state.nodes)
        for known, observed in both:
            if known != observed:
                first, second = (versions(each) for each in (known, observed))
                raise InvariantError(
                    f"{self.name} knows {first - second}, and observed {second - first}"
                )

    def _check_in_flight(self):
        """A node that was added while a pod waited on permit makes it try again."""
        for entry in self.queue.dump()["unschedulable"]:
            hesitated = Hesitate.name in entry.unschedulable_plugins
            if hesitated and self._added_at > self._popped_at[entry.uid]:
                self.fail(entry.uid, f"{entry.key} missed a node that was added meanwhile")

    def _check_nominated(self, fact):
        """Pods of higher priority keep the room that is nominated for them."""
        pods, node = self.history.state.pods, self.history.state.nodes.get(fact.node)
        pod = pods.get(fact.pod)
        ahead = [pods.get(each.key) for each in self.nominator.on(fact.node)]
        ahead = [each for each in ahead if each and each.uid != fact.uid and not each.node_name]
        ahead = [each for each in ahead if each.priority > pod.priority]
        if ahead and (problem := shortage(pod, node, [*self._users(fact.node), *ahead])):
            names = ", ".join(each.key for each in ahead)
            self.fail(fact.uid, f"{fact.pod} takes the room of {names} on {fact.node}: {problem}")

    def _check_victims(self, fact):
        """Without any of its victims a preemption would not make enough room."""
        pods, node = self.history.state.pods, self.history.state.nodes.get(fact.node)
        pod = pods.get(fact.pod)
        ahead = [pods.get(each.key) for each in self.nominator.on(fact.node)]
        ahead = [e for e in ahead if e and e.uid != fact.uid and e.priority >= pod.priority]
        kept = [each for each in self._users(fact.node) if each.key not in fact.victims]
        for name in fact.victims:
            victim = pods.get(name)
            if victim is None or set(host_ports(pod)) & set(host_ports(victim)):
                continue
            if not shortage(pod, node, [*kept, *ahead, victim]):
                self.fail(fact.uid, f"{name} is a needless victim of {fact.pod}")

    def _users(self, node):
        """The pods that use a node, or wait on permit for it."""
        cached = {each.pod.uid: each.pod for each in self.cache if each.node == node}
        return list((self.history._pods_on(node) | cached).values())

    def fail(self, uid, text):
        story = "\n".join(f"  {fact}" for fact in self.journal.story(uid))
        raise InvariantError(f"{self.name}: {text}\n{story}")


def versions(objects):
    return {(key, obj.uid, obj.metadata.resource_version) for key, obj in objects.items()}


def host_ports(pod):
    return [p.host_port for c in pod.spec.containers for p in c.ports if p.host_port]


class NetworkChecks:
    """Sees every request, and every change of the cluster."""

    def __init__(self, loop, api, election, *, checks_room):
        self.claims = ClaimChecks(api, self._fail, checks_devices=checks_room)
        self._loop = loop
        self._api = api
        self._election = election
        self._checks_room = checks_room
        self.log = []
        self.counts = defaultdict(Counter)  # process -> (verb, kind) -> requests
        self.faults = Counter()
        self._renewed_at = {}  # process -> when its last successful renewal was sent
        self._holder = "", 0.0  # Of the lease, and when it was last renewed.
        self._acquired_at = {}  # process -> when it became the holder
        self._listed_at = {}  # process and kind -> when its last successful list was sent
        self._pods, self._nodes = {}, {}
        self.bound = {}  # UID -> node
        self.bound_by = {}  # UID -> process and time
        self.binds = 0
        self.changes = 0  # Of nodes and pods.
        api.store.subscribe(self._changed)

    def now(self):
        return self._loop.time()

    def sent(self, process, verb, plural, path, fault):
        now = self._loop.time()
        self.log.append((round(now, 6), process.name, verb, path, fault))
        self.counts[process.name][verb, plural] += 1
        self.faults[fault] += 1
        if verb in FENCED and plural not in UNFENCED_KINDS:
            deadline = self._renewed_at.get(process, -1e9) + self._election.renew_deadline_seconds
            if now >= deadline:
                self._fail(f"{process.name} sent {verb} {path} {now - deadline:.3f} s too late")
        if verb == "bind":
            for kind in ("pods", "nodes"):
                if self._listed_at.get((process, kind), -1.0) < self._acquired_at[process.name]:
                    self._fail(f"{process.name} sent {path}, and has not listed {kind} as leader")

    def sent_to_extender(self, process, verb, fault):
        self.log.append((round(self._loop.time(), 6), process.name, f"extender {verb}", "", fault))

    def answered(self, process, verb, plural, sent_at, body, status):
        if plural == "leases" and verb in ("create", "update") and 200 <= status < 300:
            holder = msgspec.json.decode(body)["spec"].get("holderIdentity")
            self._renewed_at[process] = sent_at if holder else -1e9
        elif verb == "list" and status == 200:
            self._listed_at[process, plural] = sent_at

    def performed(self, process, request, response):
        path = request[1]
        if path.partition("?")[0].endswith("/binding") and response.status == 201:
            self.binds += 1
            uid = msgspec.json.decode(request[3])["metadata"]["uid"]
            self.bound_by[uid] = process.name, self._loop.time()
            lease = self._api.store.find(LEASES, "kube-system", "kube-scheduler")
            holder = lease["spec"].get("holderIdentity")
            if holder != process.name:
                self._fail(f"{process.name} bound {path} while {holder} holds the lease")

    def check_end(self):
        self.claims.check_end(set(self._pods))

    def _lease_changed(self, spec):
        """A candidate waits until the lease of another one has expired, or is released."""
        now, (before, renewed_at) = self._loop.time(), self._holder
        holder = spec.get("holderIdentity") or ""
        if holder and holder != before:
            self._acquired_at[holder] = now
            if before and now < renewed_at + self._election.lease_duration_seconds:
                self._fail(f"{holder} took the lease {now - renewed_at:.3f} s after {before}")
        self._holder = holder, now

    def _changed(self, change):
        self.changes += change.resource in (NODES, PODS)
        name = change.object["metadata"]["name"]
        if change.resource is LEASES and name == self._election.resource_name:
            self._lease_changed(change.object["spec"])
        if change.resource is NODES:
            node = msgspec.convert(change.object, Node)
            if change.type == DELETED:
                self._nodes.pop(node.name, None)
            else:
                self._nodes[node.name] = node
        elif change.resource is not PODS:
            self.claims.changed(change)
        else:
            pod = msgspec.convert(change.object, Pod)
            if change.type == DELETED or pod.is_terminal:
                self._pods.pop(pod.uid, None)
                return
            self._pods[pod.uid] = pod
            before = self.bound.get(pod.uid)
            if pod.node_name and before != pod.node_name:
                if before:
                    self._fail(f"{pod.key} moved from {before} to {pod.node_name}")
                self.bound[pod.uid] = pod.node_name
                self._check_room(pod)
                self.claims.bound(change.object)

    def _check_room(self, pod):
        node = self._nodes.get(pod.node_name)
        if node is None or not self._checks_room:
            return
        there = [each for each in self._pods.values() if each.node_name == node.name]
        if problem := shortage(pod, node, there):
            self._fail(f"{pod.key} was bound to {node.name}: {problem}")

    def _fail(self, text):
        error = InvariantError(f"at {self._loop.time():.3f} s: {text}")
        # A handler of the server in between may turn an exception into a response.
        self._loop.failures.append(error)
        raise error


def check_requests(live, counts):
    """Requests are bounded by the attempts to schedule pods, even if each is repeated."""
    attempts = sum(isinstance(fact, Popped) for fact in live.scheduler.journal)
    for name in (("patch", "pods"), ("create", "events"), ("patch", "events"), ("bind", "pods")):
        if counts[name] > MOST_TRIES * attempts + SPARE_REQUESTS:
            raise InvariantError(f"{counts[name]} requests {name} for {attempts} attempts")


def check_end(live, api, configuration):
    """The leader after a time without faults."""
    scheduler = live.scheduler
    stored = {kind: objects(api, kind) for kind in KINDS.values()}
    pods = [pod for pod in stored[KINDS["Pod"]] if not pod.is_terminal]
    known = {cached.pod.uid: cached.node for cached in scheduler.cache if not cached.assumed}
    truth = {pod.uid: pod.node_name for pod in pods if pod.node_name}
    if known != truth:
        raise InvariantError(f"the cache differs from the cluster: {known.items() ^ truth.items()}")
    check_same(versions(scheduler._state.pods), versions({pod.key: pod for pod in pods}))
    check_same(contents(filter(None, scheduler.cluster.table.nodes)), contents(stored[NODE]))
    check_pending(scheduler, pods, stored, configuration)
    waiting = scheduler.cluster.waiting
    left = {
        "requests of pods": len(live.performer._pods),
        "outcomes": len(live._finished),
        "observations": live.observations.put_count - live.observations.taken_count,
        "pods in flight": len(scheduler.queue.dump()["in_flight"]) - len(waiting),
        "assumed pods": scheduler.cache.assumed_count - len(waiting),
        "Events": live.events._writes.qsize(),
    }
    if any(left.values()):
        raise InvariantError(f"something is left to do: {left}")


def contents(nodes):
    """What is read of nodes. Their versions differ: heartbeats are not observed."""
    return {
        (node.name, node.uid, str(node.labels), str(node.spec), str(node.status.allocatable))
        for node in nodes
    }


def check_same(known, stored):
    if known != stored:
        raise InvariantError(f"known are {known - stored}, in the cluster are {stored - known}")


def check_pending(scheduler, pods, stored, configuration):
    """No pod waits that a new scheduler would place, or preempt others for."""
    pending = {pod.uid: pod for pod in pods if not pod.node_name and not pod.is_terminating}
    journal = RecentFacts()
    new = Scheduler(configuration, registry=Registry({Hesitate.name: Hesitate}), journal=journal)
    for kind, found in stored.items():
        new.observe(Listed(kind.struct, tuple(found)), 0.0)
    unschedulable = {each.uid: each for each in scheduler.queue.dump()["unschedulable"]}
    for _ in range(len(pending)):
        journal.recent.clear()
        for effect in new.schedule_one(0.0):
            request = effect.request
            (uid,) = (fact.uid for fact in journal.recent if isinstance(fact, Popped))
            entry = unschedulable.get(uid)
            if entry is not None and not entry.unschedulable_plugins <= COMPLETE_HINTS:
                continue
            if isinstance(request, BindPod | PatchVolume | PatchClaim | ReserveResourceClaim):
                scheduler.fail(uid, f"{request.pod.key} waits, and fits: {request}")
            if isinstance(request, DeletePod):
                scheduler.fail(
                    uid, f"{pending[uid].key} waits, and {request.pod.key} is not evicted"
                )


def objects(api, kind):
    for resource in api.registry:
        if (resource.api_version, resource.kind) == (kind.api_version, kind.name):
            return [msgspec.convert(obj, kind.struct) for obj in api.store.each(resource)]
    return []
