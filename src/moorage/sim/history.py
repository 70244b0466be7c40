"""HistoryChecker: whether the requests of one scheduler follow from what it observed.

A binding stays unconfirmed until the scheduler observes the pod bound or gone, or learns that the
binding failed. Until then it must not request it again, nor give the room to another pod.
"""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from moorage.api import quantity, requests
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.server_requests import BindPod, DeletePod, LookUpPod
from moorage.core.effects import Done, Effect, Failed, Outcome, Ticket, Unknown
from moorage.core.observations import Added, Deleted, Listed, Observation, Updated

CHECKED_RESOURCES = (requests.CPU, requests.MEMORY, requests.EPHEMERAL_STORAGE)


class DecisionBasis(Struct, frozen=True):
    """What a decision for a node was based on: the version of the node and the pods on it."""

    version: str
    uids: frozenset[str]


class UnconfirmedBinding(Struct, frozen=True):
    """A requested binding with an outcome that is not known yet."""

    pod: Pod
    node: str


class ContractViolation(Exception):
    """A request that the scheduler must not make, and the pod that it is about."""

    def __init__(self, uid: str, text: str) -> None:
        super().__init__(uid, text)
        self.uid = uid
        self.text = text


class ObservedState:
    """Nodes and pods as a scheduler last observed them, kept by the simplest means.

    It follows the contract of observations, and shares no code with the core that it checks.
    """

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self._gone: dict[str, int] = {}  # UID -> the last version of a pod that is gone

    def observe(self, observation: Observation) -> None:
        """Apply an observation."""
        match observation:
            case Added(obj=obj) | Updated(obj=obj):
                self._put(obj)
            case Deleted(obj=obj):
                self._remove(obj)
            case Listed(kind=kind, objects=objects):
                listed = {obj.uid for obj in objects}
                for known in list(self._known(kind).values()):
                    if known.uid not in listed:
                        self._remove(known)
                for obj in objects:
                    self._put(obj)

    def pods_on(self, node: str) -> Iterator[Pod]:
        """The pods on a node."""
        return (pod for pod in self.pods.values() if pod.node_name == node)

    def _known(self, kind: type[KubeObject]) -> dict[str, Pod] | dict[str, Node]:
        return self.pods if kind is Pod else self.nodes if kind is Node else {}

    def _put(self, obj: KubeObject) -> None:
        if isinstance(obj, Pod):
            if obj.is_terminal:  # A lookup may return a pod that a watch does not show.
                self._remove(obj)
                return
            known = self.pods.get(obj.key)
            if _version(obj) <= self._gone.get(obj.uid, 0) or _is_older(obj, known):
                return
            if known is not None and known.uid != obj.uid:
                self._gone[known.uid] = _version(known)
            self.pods[obj.key] = obj
        elif isinstance(obj, Node) and not _is_older(obj, self.nodes.get(obj.name)):
            self.nodes[obj.name] = obj

    def _remove(self, obj: KubeObject) -> None:
        known = self._known(type(obj))
        found = known.get(obj.key)
        if isinstance(obj, Pod):
            if obj.metadata.resource_version:
                # A list that lacks the pod shows no version; a later one is not gone.
                last = [each for each in (obj, found) if each is not None and each.uid == obj.uid]
                versions = [_version(each) for each in last]
                self._gone[obj.uid] = max(*versions, self._gone.get(obj.uid, 0))
            else:  # The storage went back, and the same pod may come again.
                self._gone.pop(obj.uid, None)
        if found is not None and found.uid == obj.uid:
            del known[obj.key]


class HistoryChecker:
    """Checks one scheduler."""

    def __init__(self) -> None:
        self.state = ObservedState()
        self._basis: dict[Ticket, DecisionBasis] = {}
        self._unconfirmed: dict[str, UnconfirmedBinding] = {}
        # (UID, node) -> ticket of the latest binding that was requested.
        self._last_requested: dict[tuple[str, str], Ticket] = {}
        self._requested: dict[Ticket, BindPod | LookUpPod | DeletePod] = {}
        # UID -> key of the pods with a deletion that is neither observed nor failed.
        self._deleted: dict[str, str] = {}

    def observe(self, observation: Observation) -> None:
        """The scheduler observes something."""
        self.state.observe(observation)
        for uid, unconfirmed in list(self._unconfirmed.items()):
            known = self.state.pods.get(unconfirmed.pod.key)
            if known is None or known.uid != uid or known.node_name:
                del self._unconfirmed[uid]
        for uid, key in list(self._deleted.items()):
            known = self.state.pods.get(key)
            if known is None or known.uid != uid:
                del self._deleted[uid]

    def check_effects(
        self, effects: Iterable[Effect], decided: Callable[[str], bool], *, checks_room: bool
    ) -> None:
        """Check requests of the scheduler.

        A binding that was decided in this call (`decided` of the UID) is checked against all that
        was observed. One that was decided earlier may be outdated.
        """
        for effect in effects:
            request = effect.request
            if isinstance(request, BindPod | DeletePod | LookUpPod):
                self._requested[effect.ticket] = request
            if isinstance(request, BindPod):
                if decided(request.pod.uid):
                    self._check_bind(request, checks_room=checks_room)
                    self._basis[effect.ticket] = self._basis_for(request.node)
                self._remember(effect.ticket, request)
            elif isinstance(request, DeletePod):
                self._check_delete(request)
                self._deleted[request.pod.uid] = request.pod.key

    def complete(self, ticket: Ticket, outcome: Outcome) -> None:
        """The scheduler receives the outcome of a request."""
        match self._requested.pop(ticket, None), outcome:
            case BindPod(pod=ref), Failed():
                self._unconfirmed.pop(ref.uid, None)
            case DeletePod(pod=ref), Failed() | Unknown():
                self._deleted.pop(ref.uid, None)
            case LookUpPod(pod=ref), Done(pod=pod):
                if pod is not None and pod.node_name:
                    self.observe(Updated(pod))
                else:
                    self._unconfirmed.pop(ref.uid, None)

    def excuses(self, ticket: Ticket, node: Node, pods: Iterable[Pod]) -> bool:
        """Whether the scheduler could not know that a node would be overcommitted.

        It knew the pods on the node when it decided, and those that it bound there later.
        """
        basis = self._basis.get(ticket)
        if basis is None or basis.version != node.metadata.resource_version:
            return True
        return any(
            pod.uid not in basis.uids
            and self._last_requested.get((pod.uid, node.name), Ticket(0)) < ticket
            for pod in pods
        )

    def _check_bind(self, request: BindPod, *, checks_room: bool) -> None:
        uid, key, name = request.pod.uid, request.pod.key, request.node
        pod, node = self.state.pods.get(key), self.state.nodes.get(name)
        if pod is None or pod.uid != uid:
            raise ContractViolation(
                uid, f"asks to bind {key}, which it was not told of, or told is gone"
            )
        if pod.node_name:
            raise ContractViolation(uid, f"asks to bind {key}, which is on {pod.node_name} already")
        if node is None:
            raise ContractViolation(uid, f"asks to bind {key} to {name}, which is not there")
        problem = shortage(pod, node, self._pods_on(name).values()) if checks_room else ""
        if problem:
            raise ContractViolation(uid, f"asks to bind {key} to {name}: {problem}")

    def _check_delete(self, request: DeletePod) -> None:
        uid, key = request.pod.uid, request.pod.key
        pod = self.state.pods.get(key)
        if pod is None or pod.uid != uid or pod.is_terminating:
            raise ContractViolation(uid, f"asks to delete {key}, which is gone or leaving already")
        if uid in self._deleted:
            raise ContractViolation(
                uid, f"asks to delete {key} again before it could see what came of it"
            )

    def _remember(self, ticket: Ticket, request: BindPod) -> None:
        uid, key, name = request.pod.uid, request.pod.key, request.node
        if uid in self._unconfirmed:
            raise ContractViolation(
                uid, f"asks to bind {key} again before it knows what became of it"
            )
        self._last_requested[uid, name] = ticket
        # Its deletion was performed but not observed; on the new node it may be a victim again.
        self._deleted.pop(uid, None)
        pod = self.state.pods.get(key)
        if pod is not None and pod.uid == uid and not pod.node_name:
            self._unconfirmed[uid] = UnconfirmedBinding(pod, name)

    def _basis_for(self, node: str) -> DecisionBasis:
        return DecisionBasis(
            self.state.nodes[node].metadata.resource_version, frozenset(self._pods_on(node))
        )

    def _pods_on(self, node: str) -> dict[str, Pod]:
        """The pods that use a node, by UID."""
        unconfirmed = {
            uid: each.pod for uid, each in self._unconfirmed.items() if each.node == node
        }
        return {pod.uid: pod for pod in self.state.pods_on(node)} | unconfirmed


def shortage(pod: Pod, node: Node, others: Iterable[Pod]) -> str:
    """Which resource of a node is insufficient for one more pod; empty if it has room."""
    others = [other for other in others if other.uid != pod.uid]
    offered = requests.allocatable(node)
    if len(others) + 1 > offered.get(requests.PODS, 0):
        return f"{len(others)} pods are there, {offered.get(requests.PODS, 0)} is the most"
    held = [requests.requested(other) for other in others]
    wanted = requests.filter_request(pod)
    for resource in CHECKED_RESOURCES:
        want, have = wanted.get(resource, 0), offered.get(resource, 0)
        used = quantity.wrapped(sum(amounts.get(resource, 0) for amounts in held))
        if want and want > quantity.wrapped(have - used):
            return f"{resource}: {used} of {have} are used, {want} are asked for"
    return ""


def _is_older(new: KubeObject, known: KubeObject | None) -> bool:
    return known is not None and _version(new) < _version(known)


def _version(obj: KubeObject) -> int:
    return int(obj.metadata.resource_version)
