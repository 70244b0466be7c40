"""Which changes may help a pod that was refused because it would crowd a domain.

Only hard constraints matter. Those of a profile get their selector from services and controllers,
which a hint cannot see: it takes any pod of the namespace for one that might be selected.
"""

from functools import lru_cache
from typing import NamedTuple

import msgspec

from moorage import plugin as mp
from moorage.plugins.pod_topology_spread import constraints
from moorage.plugins.pod_topology_spread.constraints import HARD, HONOR, Stated

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[tuple[Stated, ...], dict[str, str]]).decode


class Asked(NamedTuple):
    """What a hint needs of a hard constraint; no selector if that is not known here."""

    topology_key: str
    selector: mp.selectors.Selector | None
    honors_taints: bool

    def tells_apart(self, one: dict[str, str], other: dict[str, str]) -> bool:
        """Whether a pod comes to be selected, or ceases to be, when its labels change."""
        return self.selector is None or self.selector.matches(one) != self.selector.matches(other)

    def selects(self, labels: dict[str, str]) -> bool:
        return self.selector is None or self.selector.matches(labels)


class Hints(NamedTuple):
    """The hint functions, for the default constraints of a profile."""

    defaults: tuple[Stated, ...]

    def pod_change(self, pod: mp.Pod, old: mp.Pod | None, new: mp.Pod | None) -> mp.Hint:
        """A pod came, went, or has other labels or tolerations."""
        if not all(_is_involved(pod, each) for each in (old, new) if each is not None):
            return mp.Hint.QUEUE_SKIP
        asked = self._asked(pod)
        if old is not None and new is not None:
            more = old.spec.tolerations != new.spec.tolerations and new.uid == pod.uid
            helps = more and any(each.honors_taints for each in asked)
            changed = old.labels != new.labels
            helps |= changed and any(each.tells_apart(old.labels, new.labels) for each in asked)
        else:
            labels = (new or old or pod).labels
            helps = any(each.selects(labels) for each in asked)
        return mp.Hint.QUEUE if helps else mp.Hint.QUEUE_SKIP

    def node_change(self, pod: mp.Pod, old: mp.Node | None, new: mp.Node | None) -> mp.Hint:
        """A node came, went, or has other labels or taints."""
        keys = [each.topology_key for each in self._asked(pod)]
        mattered = old is not None and all(key in old.labels for key in keys)
        matters = new is not None and all(key in new.labels for key in keys)
        helps = mattered != matters
        if old is not None and new is not None and matters:
            moved = any(old.labels.get(key) != new.labels[key] for key in keys)
            helps |= moved or old.spec.taints != new.spec.taints
        return mp.Hint.QUEUE if helps else mp.Hint.QUEUE_SKIP

    def _asked(self, pod: mp.Pod) -> tuple[Asked, ...]:
        own = pod.spec.topology_spread_constraints
        if own:
            return _parsed(_encode((own, pod.labels)))
        return tuple(
            Asked(each.topology_key, None, each.node_taints_policy == HONOR)
            for each in self.defaults
            if each.when_unsatisfiable == HARD
        )


# The same few pods are asked about again and again, once for every change.
@lru_cache(maxsize=1024)
def _parsed(content: bytes) -> tuple[Asked, ...]:
    stated, labels = _decode(content)
    pod = mp.Pod(metadata=mp.ObjectMeta(labels=labels))
    return tuple(
        Asked(each.topology_key, each.selector, each.honors_taints)
        for each in constraints.parse(pod, stated, HARD)
    )


def _is_involved(pod: mp.Pod, other: mp.Pod) -> bool:
    """Whether a pod may count for another: it is that one, or has a place in its namespace."""
    if other.uid == pod.uid:
        return True
    has_place = bool(other.node_name or other.status.nominated_node_name)
    return has_place and other.namespace == pod.namespace
