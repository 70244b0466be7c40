"""Performer: a request -> what the cluster in memory does about it -> an outcome."""

from typing import assert_never

from moorage.api.pod import Pod
from moorage.core.effects import Done, Failed, Outcome, Unknown
from moorage.framework.effects import (
    BindPod,
    DeletePod,
    EmitEvent,
    LookUpPod,
    PatchPodStatus,
    Request,
)
from moorage.sim.cluster import Cluster
from moorage.sim.faults import Fate
from moorage.sim.refusals import Refusal


def perform(
    cluster: Cluster, request: Request, fate: Fate, now: float, events: list[EmitEvent]
) -> Outcome:
    """Carry a request out, as far as its fate allows, and say what the scheduler gets to hear."""
    outcome: Outcome = Failed(fate.failed)
    if fate.carried_out:
        try:
            outcome = Done(_carry_out(cluster, request, now, events))
        except Refusal as refusal:
            outcome = Failed(str(refusal), missing=_is_missing(cluster, request))
    return Unknown(fate.unknown) if fate.unknown else outcome


def _is_missing(cluster: Cluster, request: Request) -> bool:
    """Whether the pod that a request is about is not there; a namesake is another pod."""
    pod = cluster.get(Pod, request.pod.key)
    return pod is None or pod.uid != request.pod.uid


def _carry_out(
    cluster: Cluster, request: Request, now: float, events: list[EmitEvent]
) -> Pod | None:
    match request:
        case EmitEvent():
            events.append(request)
        case BindPod(pod=ref, node=node):
            cluster.bind(ref.key, ref.uid, node, now)
        case PatchPodStatus(pod=ref, condition=condition, nominated_node_name=nominated):
            cluster.patch_status(ref.key, ref.uid, now, condition, nominated)
        case DeletePod(pod=ref):
            cluster.pod(ref.key, ref.uid)  # A namesake is left alone.
            cluster.delete(Pod, ref.key, now)
        case LookUpPod(pod=ref):
            pod = cluster.get(Pod, ref.key)
            return pod if pod is not None and pod.uid == ref.uid else None
        case _:
            assert_never(request)
    return None
