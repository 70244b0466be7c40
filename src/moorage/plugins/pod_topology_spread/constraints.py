"""Constraint: what one topology spread constraint asks, parsed for a pod."""

from collections.abc import Iterable
from dataclasses import dataclass

from moorage import plugin as mp

Selector = mp.selectors.Selector
Stated = mp.TopologySpreadConstraint

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
HONOR, IGNORE = "Honor", "Ignore"

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

# What applies to pods that state no constraints, unless a profile has a list of its own.
SYSTEM_DEFAULTS = (
    Stated(topology_key=HOSTNAME, when_unsatisfiable=SOFT, max_skew=3),
    Stated(topology_key=ZONE, when_unsatisfiable=SOFT, max_skew=5),
)


@dataclass(frozen=True, slots=True)
class Constraint:
    """How far a domain's number of matching pods may be from the least, on nodes that count."""

    topology_key: str
    max_skew: int
    min_domains: int
    selector: Selector
    namespace: str
    inclusion: mp.Inclusion
    # Whether the pod that is to be placed is one of those that the selector matches.
    matches_itself: bool

    @property
    def clauses(self) -> tuple[mp.Clause, ...]:
        """The pods that it counts; none if the selector is empty, though that matches all."""
        selector = self.selector
        if selector.is_empty or selector.matches_nothing:
            return ()
        return (mp.Clause(frozenset((self.namespace,)), selector),)

    @property
    def honors_taints(self) -> bool:
        return self.inclusion.tolerations is not None


def parse(
    pod: mp.Pod,
    stated: Iterable[Stated],
    action: str,
    *,
    selector: Selector | None = None,
    require_all: bool = True,
) -> tuple[Constraint, ...]:
    """The constraints for an action, all with one selector if that is given.

    A node that lacks any of their topology keys counts for none of them, unless `require_all` is
    off. A selector that does not parse raises.
    """
    chosen = [each for each in stated if each.when_unsatisfiable == action]
    keys = [each.topology_key for each in chosen] if require_all else []
    return tuple(_constraint(pod, each, keys, selector) for each in chosen)


def _constraint(
    pod: mp.Pod, stated: Stated, keys: Iterable[str], selector: Selector | None
) -> Constraint:
    chosen = _own_selector(pod, stated) if selector is None else selector
    return Constraint(
        topology_key=stated.topology_key,
        max_skew=stated.max_skew,
        min_domains=1 if stated.min_domains is None else stated.min_domains,
        selector=chosen,
        namespace=pod.namespace,
        inclusion=mp.Inclusion.of(
            pod,
            keys,
            honor_affinity=(stated.node_affinity_policy or HONOR) == HONOR,
            honor_taints=(stated.node_taints_policy or IGNORE) == HONOR,
        ),
        matches_itself=chosen.matches(pod.labels),
    )


def _own_selector(pod: mp.Pod, stated: Stated) -> Selector:
    """As stated, and with today's values of the labels under `matchLabelKeys`."""
    selector = mp.selectors.compile_label_selector(stated.label_selector)
    labels = pod.labels
    return selector.also(
        [mp.selectors.equals(key, labels[key]) for key in stated.match_label_keys if key in labels]
    )
