"""Preemptions: victims evicted for pods that were promised their room.

    stage   what is asked of the world                        next
    FIRST   promises to lesser pods on the node taken back;
            every victim but the last marked, then deleted    LAST; OVER if a victim failed
    LAST    the last victim marked, then deleted              OVER
    OVER    nothing; if anything failed, the pod is tried again soon

The last victim is left until the others are on their way: its end is the change that the pod waits
for. Until the world shows all of them leaving, the pod is held back: an attempt that does not know
of them could only evict more. Victims that are only on their way to the node are taken back without
asking the world. A victim is asked to leave once, however many pods wait for that. Nobody is
evicted any more for a pod that is gone.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from moorage.api.meta import Condition
from moorage.api.pod import Pod
from moorage.core.effects import Done, Failed, Outcome
from moorage.core.journal import Erred, Journal, Preempted, Preempting
from moorage.core.nominator import Nominator
from moorage.errors import InvariantError
from moorage.framework.effects import DeletePod, EmitEvent, PatchPodStatus, PodRef, Request
from moorage.framework.profile import Profile

DISRUPTION_TARGET = "DisruptionTarget"
BY_SCHEDULER = "PreemptionByScheduler"
IN_MEMORY = " (in kube-scheduler memory)."


class Stage(Enum):
    """How far a preemption is."""

    FIRST = "all victims but the last are asked to leave"
    LAST = "the last victim is asked to leave"
    OVER = "all is done that could be done"


@dataclass(slots=True)
class Preemption:
    """One pod's victims on their way out."""

    number: int
    pod: Pod
    node: str
    plugin: str
    profile: Profile
    victims: tuple[Pod, ...]
    stage: Stage = Stage.FIRST
    # What is waited for: victims (by UID) that are asked to leave, victims that the world does not
    # show leaving, and pods whose promise is taken back.
    leaving: set[str] = field(default_factory=set)
    unseen: set[str] = field(default_factory=set)
    clearing: set[str] = field(default_factory=set)
    has_failed: bool = False
    victim_failed: bool = False
    # Whether the pod is held back meanwhile.
    is_held: bool = True


@dataclass(slots=True)
class Eviction:
    """One victim on its way out, and the preemptions (by number) that wait for it."""

    victim: Pod
    by: Preemption
    waiting: list[int]
    is_marked: bool = False


@dataclass(slots=True)
class World:
    """What preemptions need of what is around them."""

    # namespace/name -> the pod as the world last showed it
    known: Callable[[str], Pod | None]
    # UID -> the node that holds room for the pod; empty if none does
    node_of: Callable[[str], str]
    # Send back a pod that is only on its way to a node, naming the plugin that wants it; False if
    # that cannot be done.
    take_back: Callable[[Pod, str], bool]
    # Try a pod soon, whatever it waits for.
    try_again: Callable[[Pod], None]
    # Try a pod soon that was turned away while it was held back.
    let_in: Callable[[Pod], None]
    # Ask for something; the outcome comes back under the name, unless that is empty.
    ask: Callable[[Request, str], None]


class Preemptions:
    """All that are under way."""

    def __init__(self, world: World, nominator: Nominator, journal: Journal) -> None:
        self._world = world
        self._nominator = nominator
        self._journal = journal
        self._last_number = 0
        self._under_way: dict[int, Preemption] = {}
        self._evictions: dict[str, Eviction] = {}
        # Victims that the world does not show leaving, with the preemptions that look out for it.
        self._watched: dict[str, list[int]] = {}
        # How many preemptions hold each pod back, by UID.
        self._holding: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(
        self,
        pod: Pod,
        node: str,
        victims: Iterable[Pod],
        plugin: str,
        profile: Profile,
        now: float,
    ) -> None:
        """Evict pods from a node so that another may take their place."""
        staying = [victim for victim in victims if not victim.is_terminating]
        if not staying:
            return  # All of them are on their way out already.
        keys = tuple(victim.key for victim in staying)
        self._journal.add(Preempting(at=now, pod=pod.key, uid=pod.uid, node=node, victims=keys))
        self._last_number += 1
        preemption = Preemption(self._last_number, pod, node, plugin, profile, tuple(staying))
        self._under_way[preemption.number] = preemption
        self._holding[pod.uid] += 1
        self._tell(preemption, now)
        self._clear_promises(preemption)
        for victim in staying[:-1]:
            self._evict(victim, preemption, now)
        self._step(preemption, now)

    def answered(self, name: str, outcome: Outcome, now: float) -> None:
        """Something that was asked for came to an end."""
        number, _, uid = name.partition(" ")
        if number == "victim":
            self._victim_answered(self._evictions[uid], outcome, now)
        else:
            preemption = self._under_way[int(number)]
            preemption.clearing.discard(uid)
            if not isinstance(outcome, Done):
                preemption.has_failed = True
            self._step(preemption, now)

    def leaves(self, victim: Pod, now: float) -> None:
        """The world shows a pod leaving, or gone; told before anybody is woken by that."""
        self._seen(victim.uid, now)

    def check(self) -> None:
        """Raise InvariantError if a preemption waits for nothing, or a victim for nobody."""
        for preemption in self._under_way.values():
            if not (preemption.leaving or preemption.unseen or preemption.clearing):
                raise InvariantError(f"the preemption for {preemption.pod.key} waits for nothing")
            for uid in preemption.leaving:
                if preemption.number not in self._evictions[uid].waiting:
                    raise InvariantError(f"nobody is told when victim {uid} has left")
            for uid in preemption.unseen:
                if preemption.number not in self._watched[uid]:
                    raise InvariantError(f"nobody looks out for victim {uid}")
        for uid, eviction in self._evictions.items():
            if not any(uid in self._under_way[number].leaving for number in eviction.waiting):
                raise InvariantError(f"{eviction.victim.key} is evicted for nobody")

    # One preemption

    def _clear_promises(self, preemption: Preemption) -> None:
        """Lesser pods that were promised the node may not fit any more, and look elsewhere."""
        for promised in self._nominator.on(preemption.node):
            other = self._world.known(promised.key)
            if (
                other is not None
                and other.uid == promised.uid
                and other.priority < preemption.pod.priority
                and other.status.nominated_node_name
            ):
                preemption.clearing.add(other.uid)
                patch = PatchPodStatus(PodRef.of(other), nominated_node_name="")
                self._world.ask(patch, f"{preemption.number} {other.uid}")

    def _step(self, preemption: Preemption, now: float) -> None:
        """Go on as far as possible."""
        if preemption.leaving:
            return
        if preemption.stage is Stage.FIRST:
            if preemption.victim_failed or not self._is_wanted(preemption):
                preemption.stage = Stage.OVER
            else:
                preemption.stage = Stage.LAST
                self._evict(preemption.victims[-1], preemption, now)
        if not preemption.leaving and not preemption.clearing:
            if preemption.unseen and not preemption.victim_failed:
                return
            self._end(preemption, now)

    def _end(self, preemption: Preemption, now: float) -> None:
        preemption.stage = Stage.OVER
        del self._under_way[preemption.number]
        for uid in preemption.unseen:
            self._watched[uid].remove(preemption.number)
        self._let_go(preemption, now)
        if preemption.has_failed or preemption.victim_failed:
            self._world.try_again(preemption.pod)

    def _is_wanted(self, preemption: Preemption) -> bool:
        """Whether the pod still waits for the room."""
        known = self._known(preemption.pod)
        return known is not None and _stays(known)

    def _seen(self, uid: str, now: float) -> None:
        """The world shows a victim leaving."""
        for number in self._watched.pop(uid, ()):
            preemption = self._under_way[number]
            preemption.unseen.discard(uid)
            if not preemption.unseen and preemption.stage is not Stage.FIRST:
                self._let_go(preemption, now)
            self._step(preemption, now)

    def _let_go(self, preemption: Preemption, now: float) -> None:
        """Hold the pod back no longer, unless more is under way for it."""
        if preemption.is_held:
            preemption.is_held = False
            self._holding[preemption.pod.uid] -= 1
            if not self._holding[preemption.pod.uid]:
                del self._holding[preemption.pod.uid]
                self._tell(preemption, now)
                if not any(self._is_on_node(victim, preemption) for victim in preemption.victims):
                    # Nobody's end is still to come that the pod could wait for.
                    self._world.let_in(preemption.pod)

    def _tell(self, preemption: Preemption, now: float) -> None:
        """Let the plugin know, which may hold the pod back meanwhile."""
        pod, over = preemption.pod, not preemption.is_held
        trouble = preemption.profile.report_preemption(preemption.plugin, pod, over=over)
        if trouble:
            self._journal.add(Erred(at=now, pod=pod.key, uid=pod.uid, message=trouble))

    # One victim

    def _evict(self, victim: Pod, preemption: Preemption, now: float) -> None:
        uid, known = victim.uid, self._known(victim)
        if known is None or not self._is_in_the_way(known, preemption):
            return  # Gone, or going, for whatever reason.
        if uid in self._evictions:
            self._evictions[uid].waiting.append(preemption.number)
            preemption.leaving.add(uid)
            self._look_out_for(uid, preemption)
        elif uid in self._watched:
            self._look_out_for(uid, preemption)  # It was asked to leave, and has agreed.
        elif self._world.take_back(known, preemption.plugin):
            self._has_left(known, preemption, now, IN_MEMORY)
        else:
            eviction = Eviction(known, preemption, [preemption.number])
            self._evictions[uid] = eviction
            preemption.leaving.add(uid)
            self._look_out_for(uid, preemption)
            self._ask_to_leave(eviction)

    def _known(self, pod: Pod) -> Pod | None:
        """A pod as the world last showed it; None if it is gone."""
        known = self._world.known(pod.key)
        return known if known is not None and known.uid == pod.uid else None

    def _is_on_node(self, victim: Pod, preemption: Preemption) -> bool:
        return self._world.node_of(victim.uid) == preemption.node

    def _is_in_the_way(self, victim: Pod, preemption: Preemption) -> bool:
        """Whether a victim is on the node, and not about to leave it anyway."""
        return _stays(victim) and self._is_on_node(victim, preemption)

    def _look_out_for(self, uid: str, preemption: Preemption) -> None:
        preemption.unseen.add(uid)
        self._watched.setdefault(uid, []).append(preemption.number)

    def _ask_to_leave(self, eviction: Eviction) -> None:
        """Mark the victim, then delete it with its own grace period."""
        victim = eviction.victim
        mark = _mark(victim, eviction.by.pod)
        eviction.is_marked = eviction.is_marked or _is_same(victim, mark)
        name = f"victim {victim.uid}"
        if eviction.is_marked:
            self._world.ask(DeletePod(PodRef.of(victim)), name)
        else:
            self._world.ask(PatchPodStatus(PodRef.of(victim), condition=mark), name)

    def _victim_answered(self, eviction: Eviction, outcome: Outcome, now: float) -> None:
        victim, done = eviction.victim, isinstance(outcome, Done)
        known = self._known(victim)
        in_the_way = known is not None and self._is_in_the_way(known, eviction.by)
        if done and in_the_way and not eviction.is_marked:
            eviction.is_marked = True
            self._ask_to_leave(eviction)
            return
        if done and eviction.is_marked:
            self._has_left(victim, eviction.by, now)
        uid, gone = victim.uid, isinstance(outcome, Failed) and outcome.missing
        failed = not (done or gone)
        del self._evictions[uid]
        for number in eviction.waiting:
            preemption = self._under_way[number]
            preemption.leaving.discard(uid)
            preemption.victim_failed = preemption.victim_failed or failed
        if not (done and in_the_way):
            self._seen(uid, now)  # Or never will be: there is nothing to look out for.
        for number in eviction.waiting:
            if number in self._under_way:
                self._step(self._under_way[number], now)

    def _has_left(self, victim: Pod, by: Preemption, now: float, how: str = "") -> None:
        """Tell who had to leave, for whom, and where."""
        self._journal.add(
            Preempted(
                at=now,
                pod=victim.key,
                uid=victim.uid,
                node=by.node,
                by=by.pod.key,
                by_uid=by.pod.uid,
            )
        )
        note = f"Preempted by pod {by.pod.uid} on node {by.node}{how}"
        reporter = by.pod.spec.scheduler_name
        event = EmitEvent(PodRef.of(victim), "Normal", "Preempted", "Preempting", note, reporter)
        self._world.ask(event, "")


def _stays(pod: Pod) -> bool:
    return not (pod.is_terminating or pod.is_terminal)


def _mark(victim: Pod, by: Pod) -> Condition:
    return Condition(
        type=DISRUPTION_TARGET,
        status="True",
        reason=BY_SCHEDULER,
        message=f"{by.spec.scheduler_name}: preempting to accommodate a higher priority pod",
        observed_generation=victim.metadata.generation or None,
    )


def _is_same(victim: Pod, mark: Condition) -> bool:
    """Whether the victim is marked already, in the same words."""
    shown = victim.condition(DISRUPTION_TARGET)
    return shown is not None and (shown.status, shown.reason, shown.message) == (
        mark.status,
        mark.reason,
        mark.message,
    )
