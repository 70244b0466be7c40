"""Shapes with pods that have affinity, anti-affinity or spread constraints.

The initial pods have the same constraints. Only where no two pods of a kind can share a node, there
are ten kinds, so that enough nodes stay feasible.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from moorage.api.meta import KubeObject, LabelSelector, ObjectMeta
from moorage.api.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from moorage.api.policy import Namespace
from moorage.api.workloads import Service, ServiceSpec
from moorage.bench.workload import HOSTNAME, NAMESPACE, ZONE, BenchLoad, nodes_of, pod, shape

GREEN = {"color": "green"}
GREEN_PODS = LabelSelector(match_labels=GREEN)
TEAM = {"team": "devops"}
OF_THE_TEAM = LabelSelector(match_labels=TEAM)
NAMESPACES = 100
KINDS = 10

NEAR_BY_HOST = PodAffinityTerm(label_selector=GREEN_PODS, topology_key=HOSTNAME)
NEAR_BY_ZONE = PodAffinityTerm(label_selector=GREEN_PODS, topology_key=ZONE)
NEAR_IN_TEAM = PodAffinityTerm(
    label_selector=GREEN_PODS, topology_key=HOSTNAME, namespace_selector=OF_THE_TEAM
)


# Affinity


@shape(pods=2_000)
def anti_affinity(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with required anti-affinity by host."""
    there = [_anti_affine(i) for i in range(initial)]
    return BenchLoad(nodes_of(nodes), there, [_anti_affine(i * KINDS, "pod") for i in range(pods)])


@shape(pods=5_000)
def affinity(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with required affinity by zone."""
    return _green(nodes, initial, pods, affinity=Affinity(pod_affinity=_required(NEAR_BY_ZONE)))


@shape(pods=5_000)
def preferred_affinity(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with preferred affinity by host."""
    return _green(nodes, initial, pods, affinity=Affinity(pod_affinity=_preferred(NEAR_BY_HOST)))


@shape(pods=5_000)
def preferred_anti_affinity(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with preferred anti-affinity by host."""
    affinity = Affinity(pod_anti_affinity=_preferred(NEAR_BY_HOST))
    return _green(nodes, initial, pods, affinity=affinity)


@shape(pods=5_000)
def mixed(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with none, or with one of the four kinds of affinity."""
    kinds = (
        None,
        Affinity(pod_affinity=_required(NEAR_BY_ZONE)),
        _apart(NEAR_BY_HOST),
        Affinity(pod_affinity=_preferred(NEAR_BY_HOST)),
        Affinity(pod_anti_affinity=_preferred(NEAR_BY_HOST)),
    )

    def one(i: int) -> Pod:
        # Colors of their own: a color with anti-affinity must leave feasible nodes to the others.
        kind = i % len(kinds)
        labels = GREEN if kind in (1, 3) else {"color": f"color-{kind}"}
        return pod(f"initial-{i}", labels=labels, affinity=kinds[kind])

    there = [one(i) for i in range(initial)]
    return BenchLoad(nodes_of(nodes), there, [pod(f"pod-{i}") for i in range(pods)])


# The same across namespaces


@shape(pods=2_000)
def anti_affinity_ns(nodes: int, initial: int, pods: int) -> BenchLoad:
    """As anti-affinity, in 100 namespaces of a selector."""
    wanted = _in_team(nodes, 0, pods, _apart(NEAR_IN_TEAM))
    return replace(wanted, initial=[_anti_affine(i) for i in range(initial)])


@shape(pods=2_000)
def preferred_affinity_ns(nodes: int, initial: int, pods: int) -> BenchLoad:
    """As preferred-affinity, in 100 namespaces of a selector."""
    return _in_team(nodes, initial, pods, Affinity(pod_affinity=_preferred(NEAR_IN_TEAM)))


@shape(pods=2_000)
def preferred_anti_affinity_ns(nodes: int, initial: int, pods: int) -> BenchLoad:
    """As preferred-anti-affinity, in 100 namespaces of a selector."""
    return _in_team(nodes, initial, pods, Affinity(pod_anti_affinity=_preferred(NEAR_IN_TEAM)))


# Spreading


@shape(pods=5_000)
def zone_spread(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with a required spread over zones."""
    return _spread(nodes, initial, pods, "DoNotSchedule")


@shape(pods=5_000)
def preferred_spread(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with a preferred spread over zones."""
    return _spread(nodes, initial, pods, "ScheduleAnyway")


@shape(pods=5_000)
def default_spread(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods of a Service, with the default spread over hosts and zones."""
    service = Service(
        metadata=ObjectMeta(name="green", namespace=NAMESPACE, uid="service-green"),
        spec=ServiceSpec(selector=GREEN),
    )
    return _green(nodes, initial, pods, others=[service])


# Parts


def _anti_affine(i: int, prefix: str = "initial") -> Pod:
    """A pod of one of ten kinds (the first is green) with anti-affinity to its own kind."""
    labels = {"color": "green" if i % KINDS == 0 else f"color-{i % KINDS}"}
    term = PodAffinityTerm(label_selector=LabelSelector(match_labels=labels), topology_key=HOSTNAME)
    return pod(f"{prefix}-{i}", labels=labels, affinity=_apart(term))


def _apart(term: PodAffinityTerm) -> Affinity:
    return Affinity(pod_anti_affinity=_required(term))


def _required(term: PodAffinityTerm) -> PodAffinity:
    return PodAffinity(required_during_scheduling_ignored_during_execution=(term,))


def _preferred(term: PodAffinityTerm) -> PodAffinity:
    weighted = WeightedPodAffinityTerm(weight=1, pod_affinity_term=term)
    return PodAffinity(preferred_during_scheduling_ignored_during_execution=(weighted,))


def _spread(nodes: int, initial: int, pods: int, otherwise: str) -> BenchLoad:
    by_zone = TopologySpreadConstraint(
        max_skew=5, topology_key=ZONE, when_unsatisfiable=otherwise, label_selector=GREEN_PODS
    )
    return _green(nodes, initial, pods, topology_spread_constraints=(by_zone,))


def _in_team(nodes: int, initial: int, pods: int, affinity: Affinity) -> BenchLoad:
    names = [f"team-{i}" for i in range(NAMESPACES)]
    namespaces: list[KubeObject] = [
        Namespace(metadata=ObjectMeta(name=name, uid=name, labels=TEAM)) for name in names
    ]
    return _green(nodes, initial, pods, others=namespaces, in_turn=names, affinity=affinity)


def _green(
    nodes: int,
    initial: int,
    pods: int,
    *,
    others: list[KubeObject] | None = None,
    in_turn: Sequence[str] = (NAMESPACE,),
    **spec: Any,
) -> BenchLoad:
    """A workload with pods that all match the constraints of each other."""

    def green(prefix: str, i: int) -> Pod:
        return pod(f"{prefix}-{i}", labels=GREEN, namespace=in_turn[i % len(in_turn)], **spec)

    there = [green("initial", i) for i in range(initial)]
    wanted = [green("pod", i) for i in range(pods)]
    return BenchLoad(nodes_of(nodes), there, wanted, others or [])
