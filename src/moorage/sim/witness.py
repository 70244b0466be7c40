"""Witness: what one scheduler was told and asked for, and whether it had any right to.

A pod that it asked to bind stays booked until the world has shown the pod bound, gone, or for
certain not bound. Until then it must not ask again, nor give the room to anybody else.
"""

from collections.abc import Callable, Iterable

from msgspec import Struct

from moorage.api import requests
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core.effects import Done, Effect, Failed, Outcome, Ticket, Unknown
from moorage.core.observations import Observation, Updated
from moorage.framework.effects import BindPod, DeletePod, LookUpPod
from moorage.sim.told import Told

COUNTED = (requests.CPU, requests.MEMORY, requests.EPHEMERAL_STORAGE)


class Grounds(Struct, frozen=True):
    """What could be known when a node was picked: its version, and who was on it."""

    version: str
    uids: frozenset[str]


class Booked(Struct, frozen=True):
    """A pod that a node was asked to take."""

    pod: Pod
    node: str


class Complaint(Exception):
    """A scheduler did what it must not; about which pod, and what."""

    def __init__(self, uid: str, text: str) -> None:
        super().__init__(uid, text)
        self.uid = uid
        self.text = text


class Witness:
    """Follows one scheduler."""

    def __init__(self) -> None:
        self.told = Told()
        self._grounds: dict[Ticket, Grounds] = {}
        self._booked: dict[str, Booked] = {}
        # For every pod and node: the ticket under which the one was last asked to go to the other.
        self._last_asked: dict[tuple[str, str], Ticket] = {}
        self._asked: dict[Ticket, BindPod | LookUpPod | DeletePod] = {}
        # Pods that it asked to delete, until it is told that they leave, or that they do not.
        self._deleted: set[str] = set()

    def hears(self, observation: Observation) -> None:
        """The scheduler is told something."""
        self.told.hear(observation)
        for uid, booked in list(self._booked.items()):
            known = self.told.pods.get(booked.pod.key)
            if known is None or known.uid != uid or known.node_name:
                del self._booked[uid]

    def asks(
        self, effects: Iterable[Effect], decided: Callable[[str], bool], *, counts_room: bool
    ) -> None:
        """The scheduler asks for something.

        Where it `decided` at this very moment that a pod (by UID) goes, it is held to all that it
        was told. A binding that was decided upon earlier goes its way, whatever has come between.
        """
        for effect in effects:
            request = effect.request
            if isinstance(request, BindPod):
                self._asked[effect.ticket] = request
                if decided(request.pod.uid):
                    self._check_bind(request, counts_room=counts_room)
                    self._grounds[effect.ticket] = self._know(request.node)
                self._book(effect.ticket, request)
            elif isinstance(request, DeletePod):
                self._asked[effect.ticket] = request
                self._check_delete(request)
                self._deleted.add(request.pod.uid)
            elif isinstance(request, LookUpPod):
                self._asked[effect.ticket] = request

    def is_answered(self, ticket: Ticket, outcome: Outcome) -> None:
        """The scheduler learns what became of something."""
        match self._asked.pop(ticket, None), outcome:
            case BindPod(pod=ref), Failed():
                self._booked.pop(ref.uid, None)
            case DeletePod(pod=ref), Failed() | Unknown():
                self._deleted.discard(ref.uid)
            case LookUpPod(pod=ref), Done(pod=pod):
                if pod is not None and pod.node_name:
                    self.hears(Updated(pod))
                else:
                    self._booked.pop(ref.uid, None)

    def explains(self, ticket: Ticket, node: Node, pods: Iterable[Pod]) -> bool:
        """Whether an overfull node can be explained by what the scheduler could not know.

        It knew the pods that were there when it picked the node, and those it sent there later.
        """
        grounds = self._grounds.get(ticket)
        if grounds is None or grounds.version != node.metadata.resource_version:
            return True
        return any(
            pod.uid not in grounds.uids
            and self._last_asked.get((pod.uid, node.name), Ticket(0)) < ticket
            for pod in pods
        )

    def _check_bind(self, request: BindPod, *, counts_room: bool) -> None:
        uid, key, name = request.pod.uid, request.pod.key, request.node
        pod, node = self.told.pods.get(key), self.told.nodes.get(name)
        if pod is None or pod.uid != uid:
            raise Complaint(uid, f"asks to bind {key}, which it was not told of, or told is gone")
        if pod.node_name:
            raise Complaint(uid, f"asks to bind {key}, which is on {pod.node_name} already")
        if node is None:
            raise Complaint(uid, f"asks to bind {key} to {name}, which is not there")
        problem = no_room(pod, node, self._on(name).values()) if counts_room else ""
        if problem:
            raise Complaint(uid, f"asks to bind {key} to {name}: {problem}")

    def _check_delete(self, request: DeletePod) -> None:
        uid, key = request.pod.uid, request.pod.key
        pod = self.told.pods.get(key)
        if pod is None or pod.uid != uid or pod.is_terminating:
            raise Complaint(uid, f"asks to delete {key}, which is gone or leaving already")
        if uid in self._deleted:
            raise Complaint(uid, f"asks to delete {key} again before it could see what came of it")

    def _book(self, ticket: Ticket, request: BindPod) -> None:
        uid, key, name = request.pod.uid, request.pod.key, request.node
        if uid in self._booked:
            raise Complaint(uid, f"asks to bind {key} again before it knows what became of it")
        self._last_asked[uid, name] = ticket
        pod = self.told.pods.get(key)
        if pod is not None and pod.uid == uid and not pod.node_name:
            self._booked[uid] = Booked(pod, name)

    def _know(self, node: str) -> Grounds:
        return Grounds(self.told.nodes[node].metadata.resource_version, frozenset(self._on(node)))

    def _on(self, node: str) -> dict[str, Pod]:
        """The pods that have to be counted on a node, by UID."""
        booked = {uid: each.pod for uid, each in self._booked.items() if each.node == node}
        return {pod.uid: pod for pod in self.told.on(node)} | booked


def no_room(pod: Pod, node: Node, others: Iterable[Pod]) -> str:
    """What a node has too little of for one more pod; empty if it has room."""
    others = [other for other in others if other.uid != pod.uid]
    offered = requests.allocatable(node)
    if len(others) + 1 > offered.get(requests.PODS, 0):
        return f"{len(others)} pods are there, {offered.get(requests.PODS, 0)} is the most"
    held = [requests.requested(other) for other in others]
    wanted = requests.filter_request(pod)
    for resource in COUNTED:
        want, have = wanted.get(resource, 0), offered.get(resource, 0)
        used = sum(amounts.get(resource, 0) for amounts in held)
        if want and used + want > have:
            return f"{resource}: {used} of {have} are used, {want} are asked for"
    return ""
