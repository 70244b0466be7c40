"""What is behind the reasons that storage gives: which claim, which volume, who has it.

Kubernetes' texts are counted across nodes, so they leave names out. These lines put them back.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from moorage.api import claims, csi_migration, texts
from moorage.api.pod import Pod
from moorage.api.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
    VolumeNodeTerm,
)
from moorage.explaining.case import Case
from moorage.nodes import volumes

LONGEST_LIST = 140
ZONES = (
    csi_migration.ZONE,
    csi_migration.REGION,
    csi_migration.BETA_ZONE,
    csi_migration.BETA_REGION,
)


class Claimed(NamedTuple):
    """A claim that a pod uses, and the volume behind it; either may be missing."""

    name: str
    claim: PersistentVolumeClaim | None
    volume: PersistentVolume | None

    @property
    def is_bound(self) -> bool:
        return self.claim is not None and claims.is_fully_bound(self.claim)

    @property
    def volume_name(self) -> str:
        return "" if self.claim is None else self.claim.spec.volume_name


def line(case: Case) -> str:
    """What is behind a reason, or nothing if it is not one of storage's."""
    for start, say in _LINES.items():
        if case.reason.startswith(start):
            return say(case)
    return ""


def _claimed(case: Case) -> Iterator[Claimed]:
    for name in dict.fromkeys(claims.names_of(case.pod)):
        claim = case.cluster.get(PersistentVolumeClaim, f"{case.pod.namespace}/{name}")
        bound_to = "" if claim is None else claim.spec.volume_name
        volume = case.cluster.get(PersistentVolume, bound_to) if bound_to else None
        yield Claimed(name, claim, volume)


def _sentence(parts: list[str]) -> str:
    return f"{'; '.join(parts)}." if parts else ""


# One function per reason ------------------------------------------------------------------------


def _node_affinity(case: Case) -> str:
    told = []
    for name, _, volume in _claimed(case):
        affinity = None if volume is None else volume.spec.node_affinity
        if volume is not None and affinity is not None and affinity.required is not None:
            terms = " or ".join(map(_term, affinity.required.node_selector_terms)) or "no node"
            told.append(f"claim {name} is bound to {volume.name}, which only {terms} reaches")
        elif volume is not None and csi_migration.plugin_of(volume.spec) is not None:
            told.append(f"claim {name} is bound to {volume.name}{_zones(volume)}")
    return _sentence(told)


def _term(term: VolumeNodeTerm) -> str:
    return " and ".join(
        f"{each.key} {each.operator} [{', '.join(each.values)}]"
        if each.values
        else f"{each.key} {each.operator}"
        for each in term.match_expressions
    )


def _zones(volume: PersistentVolume) -> str:
    labels = [f"{key}={volume.labels[key]}" for key in ZONES if key in volume.labels]
    return f", which is in {' and '.join(labels)}" if labels else ""


def _zone(case: Case) -> str:
    told = [
        f"claim {name} is bound to {volume.name}{zones}"
        for name, _, volume in _claimed(case)
        if volume is not None and (zones := _zones(volume))
    ]
    nodes = Counter(
        " and ".join(f"{key}={node.labels[key]}" for key in ZONES if key in node.labels)
        for node in case.nodes
    )
    often_first = sorted(nodes.items(), key=lambda item: (-item[1], item[0]))
    where = [f"{labels} ({texts.count(n, 'node')})" for labels, n in often_first]
    return _sentence([*told, f"here it is {texts.listed(where, LONGEST_LIST)}"]) if told else ""


def _nothing_to_bind(case: Case) -> str:
    told = []
    for name, claim, _ in _claimed(case):
        if claim is None or claims.is_fully_bound(claim):
            continue
        chosen = claim.metadata.annotations.get(claims.SELECTED_NODE)
        if chosen is not None:
            told.append(f"the volume of claim {name} is being made for node {chosen}")
        else:
            told.append(f"claim {name} wants {_wish(claim)}, and {_supply(case, claim)}")
    return _sentence(told)


def _wish(claim: PersistentVolumeClaim) -> str:
    size = claim.spec.resources.requests.get("storage")
    amount = "" if size is None else f"{size} "
    return f"{amount}of class {claims.class_of(claim) or '(none)'}"


def _supply(case: Case, claim: PersistentVolumeClaim) -> str:
    name = claims.class_of(claim)
    free = [
        volume.name
        for volume in case.cluster.all(PersistentVolume)
        if claims.class_of(volume) == name and volume.status.phase == "Available"
    ]
    said = f"free of that class: {texts.listed(free, 60)}" if free else "no volume of it is free"
    storage_class = case.cluster.get(StorageClass, name)
    if storage_class is None:
        return said
    if storage_class.provisioner in ("", claims.NO_PROVISIONER):
        return f"{said}; none is made on demand"
    places = " or ".join(map(_topology, storage_class.allowed_topologies))
    return f"{said}; one is made on demand only where {places}" if places else said


def _topology(term: TopologySelectorTerm) -> str:
    return " and ".join(
        f"{each.key} is {' or '.join(each.values)}" for each in term.match_label_expressions
    )


def _too_little(case: Case) -> str:
    return _sentence(
        [
            f"claim {name} wants {_wish(claim)}, more than its driver says is left here"
            for name, claim, _ in _claimed(case)
            if claim is not None and not claims.is_fully_bound(claim)
        ]
    )


def _volume_lost(case: Case) -> str:
    return _sentence(
        [
            f"claim {each.name} is bound to {each.volume_name}, which does not exist"
            for each in _claimed(case)
            if each.is_bound and each.volume is None
        ]
    )


def _unbound(case: Case) -> str:
    told = []
    for each in _claimed(case):
        if each.claim is None or each.is_bound:
            continue
        name = claims.class_of(each.claim)
        storage_class = case.cluster.get(StorageClass, name) if name else None
        if each.volume_name:
            why = f"it asks for volume {each.volume_name} and is not bound to it yet"
        elif not name:
            why = "it has no class, so a volume has to be made for it by hand"
        elif storage_class is None:
            why = f"its class {name} does not exist"
        elif storage_class.volume_binding_mode == claims.WAIT_FOR_FIRST_CONSUMER:
            continue
        else:
            why = f"its class {name} does not wait for a pod, and no volume has come yet"
        told.append(f"claim {each.name} is not bound: {why}")
    return _sentence(told)


def _missing(case: Case) -> str:
    missing = [each.name for each in _claimed(case) if each.claim is None]
    where = f"in namespace {case.pod.namespace}"
    which = "claim" if len(missing) == 1 else "claims"
    return f"the pod uses {which} {', '.join(missing)}, not there {where}." if missing else ""


def _disk(case: Case) -> str:
    wanted = {use for each in case.pod.spec.volumes for use in volumes.in_conflict(each)}
    held = [
        f"{' '.join(use[:2])} by {other.key} on {node.name}"
        for node in case.nodes
        for other in node.pods
        for use in volumes.uses_of(other)
        if use in wanted
    ]
    return f"in use: {texts.listed(held, LONGEST_LIST)}."


def _one_pod_only(case: Case) -> str:
    told = []
    for name, claim, _ in _claimed(case):
        if claim is not None and "ReadWriteOncePod" in claim.spec.access_modes:
            users = [f"{other.key} on {other.node_name}" for other in _users(case, name)]
            if users:
                who = texts.listed(users, LONGEST_LIST)
                told.append(f"claim {name} is for one pod at a time, now {who}")
    return _sentence(told)


def _users(case: Case, claim: str) -> list[Pod]:
    table = case.cluster.table
    rows = table.volumes.rows(volumes.claim_use(case.pod.namespace, claim))
    pods = (pod for row in sorted(rows) for pod in table.volumes.pods(row).values())
    return [pod for pod in pods if claim in claims.names_of(pod)]


def _limits(case: Case) -> str:
    brought = Counter[str]()
    told = []
    for name, claim, volume in _claimed(case):
        driver = _driver(case, claim, volume)
        if driver:
            brought[driver] += 1
            which = "a volume to be made" if volume is None else volume.name
            told.append(f"claim {name} is {which} of {driver}")
    for each in case.pod.spec.volumes:
        driver = csi_migration.DRIVERS.get(csi_migration.plugin_of(each) or "", "")
        if driver:
            brought[driver] += 1
            told.append(f"volume {each.name} is a disk of {driver}")
    limits = Counter(
        f"{limit.allocatable.count} of {limit.name}"
        for node in case.nodes
        if (csi_node := case.cluster.get(CSINode, node.name)) is not None
        for limit in csi_node.spec.drivers
        if limit.name in brought and limit.allocatable and limit.allocatable.count is not None
    )
    often_first = sorted(limits.items(), key=lambda item: (-item[1], item[0]))
    said = [f"{limit} ({texts.count(n, 'node')})" for limit, n in often_first]
    return _sentence([*told, f"attached at most: {texts.listed(said, LONGEST_LIST)}"])


def _driver(
    case: Case, claim: PersistentVolumeClaim | None, volume: PersistentVolume | None
) -> str:
    if volume is not None:
        in_tree = csi_migration.DRIVERS.get(csi_migration.plugin_of(volume.spec) or "", "")
        return in_tree if volume.spec.csi is None else volume.spec.csi.driver
    name = "" if claim is None else claims.class_of(claim)
    storage_class = case.cluster.get(StorageClass, name)
    made_by = "" if storage_class is None else storage_class.provisioner
    return csi_migration.DRIVERS.get(made_by, made_by)


_LINES: dict[str, Callable[[Case], str]] = {
    "node(s) didn't match PersistentVolume's node affinity": _node_affinity,
    "node(s) didn't find available persistent volumes to bind": _nothing_to_bind,
    "node(s) did not have enough free storage": _too_little,
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)": _volume_lost,
    "pod has unbound immediate PersistentVolumeClaims": _unbound,
    'persistentvolume "': _volume_lost,
    'persistentvolumeclaim "': _missing,
    "waiting for ephemeral volume controller": _missing,
    "node(s) had no available disk": _disk,
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod": _one_pod_only,
    "node(s) exceed max volume count": _limits,
    "node(s) had no available volume zone": _zone,
}
