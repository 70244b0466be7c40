"""VolumeZone: a node must be in the zone and region that the labels of a volume name.

Old volumes have zone and region as labels, several values joined by `__`. A node without any of
the four labels is accepted: such a cluster has no zones. A volume's beta label is also compared
with the node's new label, but not the other way round.
"""

from collections import Counter
from collections.abc import Mapping
from functools import reduce
from operator import and_

import numpy as np

from moorage import plugin as mp
from moorage.plugins import claim_advice
from moorage.plugins.claim_advice import ZONES, VolumePlugin, named_claims

Requirement = mp.selectors.Requirement

ELSEWHERE = mp.unresolvable("node(s) had no available volume zone")
NO_NAME = mp.unresolvable("PersistentVolumeClaim had no name")
NO_CLASS = mp.unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
NO_VOLUME = mp.unresolvable("PersistentVolume had no name")

SEPARATOR = "__"
# Labels in the order in which they are checked; beta labels with those that replaced them.
LABELS: Mapping[str, str | None] = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": None,
    "topology.kubernetes.io/region": None,
}
ABSENT = [Requirement(key, "DoesNotExist") for key in LABELS]

ZoneRequirements = tuple[Requirement, ...]
ZONE_REQUIREMENTS = mp.StateKey[ZoneRequirements]("VolumeZone.requirements")


class VolumeZone(VolumePlugin):
    name = "VolumeZone"
    reads_kinds = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass")

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        requirements = zones_of_pod(pod, state.cluster)
        if isinstance(requirements, mp.Status):
            return requirements
        if not requirements:
            return mp.SKIP
        state[ZONE_REQUIREMENTS] = requirements
        return mp.SUCCESS

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        requirements, labels = _requirements_in(state, pod), node.labels
        if isinstance(requirements, mp.Status):
            return requirements
        if not any(key in labels for key in LABELS):
            return mp.SUCCESS
        for requirement in requirements:
            value = labels.get(requirement.key)
            newer = LABELS[requirement.key]
            if value is None and newer is not None:
                value = labels.get(newer)
            if value not in requirement.values:
                return ELSEWHERE
        return mp.SUCCESS

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        requirements = _requirements_in(state, pod)
        if isinstance(requirements, mp.Status):
            return mp.Verdicts(fits=np.zeros(len(table), dtype=np.bool_), otherwise=requirements)
        fits = np.ones(len(table), dtype=np.bool_)
        for requirement in requirements:
            here = table.meets(requirement)
            newer = LABELS[requirement.key]
            if newer is not None:
                instead = table.meets(Requirement(newer, "In", requirement.values))
                here = here | instead & table.meets(Requirement(requirement.key, "DoesNotExist"))
            fits &= here
        if not table.all_of(fits):
            fits |= reduce(and_, map(table.meets, ABSENT))
        return mp.Verdicts(fits=fits, otherwise=ELSEWHERE)

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        if rejection.reason.startswith('persistentvolume "'):
            return claim_advice.volume_lost(rejection)
        if rejection.reason not in ELSEWHERE.reasons:
            return claim_advice.missing(rejection)
        parts = [
            f"claim {name} is bound to {volume.name}{zones}"
            for name, _, volume in claim_advice.used(rejection)
            if volume is not None and (zones := claim_advice.zones(volume))
        ]
        counts = Counter(
            " and ".join(f"{key}={node.labels[key]}" for key in ZONES if key in node.labels)
            for node in rejection.nodes
        )
        here = f"here it is {mp.texts.counted(counts, 'node', 140)}"
        return claim_advice.sentence([*parts, here]) if parts else ""

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.STORAGE_CLASS_ADD: binds_late,
            mp.ClusterEvent.NODE_ADD: None,
            mp.ClusterEvent.UPDATE_NODE_LABEL: None,
            mp.ClusterEvent.CLAIM_ADD: claim_advice.names_claim,
            mp.ClusterEvent.CLAIM_UPDATE: claim_advice.names_claim,
            mp.ClusterEvent.VOLUME_ADD: None,
            mp.ClusterEvent.VOLUME_UPDATE: moves,
        }


def zones_of_pod(pod: mp.Pod, cluster: mp.Cluster) -> ZoneRequirements | mp.Status:
    """The zones of all volumes of a pod, or a rejection."""
    requirements: dict[Requirement, None] = {}
    for name in named_claims(pod):
        found = behind(name, pod, cluster)
        if isinstance(found, mp.Status):
            return found
        if found is not None and (zones := zones_of(found)):
            requirements.update(dict.fromkeys(zones))
    return tuple(requirements)


def _requirements_in(state: mp.CycleState, pod: mp.Pod) -> ZoneRequirements | mp.Status:
    """What pre_filter stored, or the same if the profile does not call it."""
    found = state.get(ZONE_REQUIREMENTS, None)
    return zones_of_pod(pod, state.cluster) if found is None else found


def behind(name: str, pod: mp.Pod, cluster: mp.Cluster) -> mp.PersistentVolume | mp.Status | None:
    """The volume of a claim; None if it is provisioned for the pod's node; or a rejection."""
    if not name:
        return NO_NAME
    claim = cluster.get(mp.PersistentVolumeClaim, f"{pod.namespace}/{name}")
    if claim is None:
        return mp.unresolvable(mp.claims.not_found(name))
    if not claim.spec.volume_name:
        return _unbound(claim, cluster)
    volume = cluster.get(mp.PersistentVolume, claim.spec.volume_name)
    if volume is None:
        return mp.unresolvable(f'persistentvolume "{claim.spec.volume_name}" not found')
    return volume


def _unbound(claim: mp.PersistentVolumeClaim, cluster: mp.Cluster) -> mp.Status | None:
    name = mp.claims.class_of(claim)
    if not name:
        return NO_CLASS
    storage_class = cluster.get(mp.StorageClass, name)
    if storage_class is None:
        return mp.unresolvable(f'storageclass.storage.k8s.io "{name}" not found')
    match storage_class.volume_binding_mode:
        case None:
            return mp.unresolvable(f'VolumeBindingMode not set for StorageClass "{name}"')
        case mp.claims.WAIT_FOR_FIRST_CONSUMER:
            return None
    return NO_VOLUME


def zones_of(volume: mp.PersistentVolume) -> ZoneRequirements:
    """The zones of a volume; a label with an empty part between its `__` is ignored."""
    if LABELS.keys().isdisjoint(volume.labels):
        return ()
    requirements = []
    for key in LABELS:
        if key in volume.labels:
            values = {value.strip() for value in volume.labels[key].split(SEPARATOR)}
            if "" not in values:
                requirements.append(Requirement(key, "In", tuple(sorted(values))))
    return tuple(requirements)


def binds_late(pod: mp.Pod, old: None, new: mp.StorageClass) -> mp.Hint:
    late = new.volume_binding_mode == mp.claims.WAIT_FOR_FIRST_CONSUMER
    return mp.Hint.QUEUE if late else mp.Hint.QUEUE_SKIP


def moves(pod: mp.Pod, old: mp.PersistentVolume, new: mp.PersistentVolume) -> mp.Hint:
    return mp.Hint.QUEUE if zones_of(old) != zones_of(new) else mp.Hint.QUEUE_SKIP
