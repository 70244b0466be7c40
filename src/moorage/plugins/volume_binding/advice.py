"""Which claim of a pod has no usable volume on a node, and what there is instead."""

from collections.abc import Callable

from moorage import plugin as mp
from moorage.plugins import claim_advice
from moorage.plugins.volume_binding.finding import FAR, LOST, NO_ROOM, NOT_FOUND, REASONS
from moorage.plugins.volume_binding.pod_claims import UNBOUND, Claim


def explain(rejection: mp.Rejection) -> str:
    """The claims behind a reason."""
    return _BY_REASON.get(rejection.reason, claim_advice.missing)(rejection)


def _node_affinity(rejection: mp.Rejection) -> str:
    parts = []
    for name, _, volume in claim_advice.used(rejection):
        affinity = None if volume is None else volume.spec.node_affinity
        if volume is not None and affinity is not None and affinity.required is not None:
            terms = affinity.required.node_selector_terms
            texts = [mp.texts.requirements(term.match_expressions) for term in terms]
            where = " or ".join(texts) or "no node"
            parts.append(f"claim {name} is bound to {volume.name}, which only {where} reaches")
        elif volume is not None and mp.csi_migration.plugin_of(volume.spec) is not None:
            parts.append(f"claim {name} is bound to {volume.name}{claim_advice.zones(volume)}")
    return claim_advice.sentence(parts)


def _no_volume(rejection: mp.Rejection) -> str:
    parts = []
    for used in claim_advice.used(rejection):
        claim = used.unbound
        if claim is None:
            continue
        selected = claim.metadata.annotations.get(mp.claims.SELECTED_NODE)
        if selected is not None:
            parts.append(f"the volume of claim {used.name} is being made for node {selected}")
        else:
            available = _available(rejection.cluster, mp.claims.class_of(claim))
            parts.append(f"claim {used.name} wants {_request(claim)}, and {available}")
    return claim_advice.sentence(parts)


def _request(claim: Claim) -> str:
    size = claim.spec.resources.requests.get("storage")
    amount = "" if size is None else f"{size} "
    return f"{amount}of class {mp.claims.class_of(claim) or '(none)'}"


def _available(cluster: mp.Cluster, class_name: str) -> str:
    free = [
        volume.name
        for volume in cluster.all(mp.PersistentVolume)
        if mp.claims.class_of(volume) == class_name and volume.status.phase == "Available"
    ]
    text = "no volume of it is free"
    if free:
        text = f"free of that class: {mp.texts.listed(free, 60)}"
    storage_class = cluster.get(mp.StorageClass, class_name)
    if storage_class is None:
        return text
    if storage_class.provisioner in ("", mp.claims.NO_PROVISIONER):
        return f"{text}; none is made on demand"
    where = " or ".join(
        " and ".join(f"{e.key} is {' or '.join(e.values)}" for e in term.match_label_expressions)
        for term in storage_class.allowed_topologies
    )
    return f"{text}; one is made on demand only where {where}" if where else text


def _no_room(rejection: mp.Rejection) -> str:
    return claim_advice.sentence(
        [
            f"claim {used.name} wants {_request(claim)}, more than its driver says is left here"
            for used in claim_advice.used(rejection)
            if (claim := used.unbound) is not None
        ]
    )


def _unbound(rejection: mp.Rejection) -> str:
    parts = []
    for used in claim_advice.used(rejection):
        claim = used.unbound
        if claim is None:
            continue
        name = mp.claims.class_of(claim)
        storage_class = rejection.cluster.get(mp.StorageClass, name) if name else None
        reserved = _reserved(rejection.cluster, claim)
        if reserved:
            why = f"volume {reserved} is reserved for it, and is not bound to it yet"
        elif claim.spec.volume_name:
            why = f"it asks for volume {claim.spec.volume_name} and is not bound to it yet"
        elif not name:
            why = "it has no class, so a volume has to be made for it by hand"
        elif storage_class is None:
            why = f"its class {name} does not exist"
        elif storage_class.volume_binding_mode == mp.claims.WAIT_FOR_FIRST_CONSUMER:
            continue
        else:
            why = f"its class {name} does not wait for a pod, and no volume has come yet"
        parts.append(f"claim {used.name} is not bound: {why}")
    return claim_advice.sentence(parts)


def _reserved(cluster: mp.Cluster, claim: Claim) -> str:
    """The volume whose claimRef is a claim."""
    found = (
        volume.name
        for volume in cluster.all(mp.PersistentVolume)
        if (reference := volume.spec.claim_ref) and mp.claims.refers_to(reference, claim)
    )
    return next(found, "")


_BY_REASON: dict[str, Callable[[mp.Rejection], str]] = {
    REASONS[FAR]: _node_affinity,
    REASONS[NOT_FOUND]: _no_volume,
    REASONS[NO_ROOM]: _no_room,
    REASONS[LOST]: claim_advice.volume_lost,
    UNBOUND.reasons[0]: _unbound,
}
