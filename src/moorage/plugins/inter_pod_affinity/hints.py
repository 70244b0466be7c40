"""Which changes may help a pod that was refused for the sake of others.

Namespace selectors are asked as they stand, about namespaces without labels; Kubernetes does it
so too, and a pod that waits because of that is tried again when it has waited long.
"""

from moorage import plugin as mp

Terms = tuple[mp.AffinityTerm, ...]


def pod_change(pod: mp.Pod, old: mp.Pod | None, new: mp.Pod | None) -> mp.Hint:
    """A pod came, went, or has other labels."""
    if new is not None and old is not None and new.uid == pod.uid:
        return mp.Hint.QUEUE
    if not all(_has_place(each) for each in (old, new) if each is not None):
        return mp.Hint.QUEUE_SKIP
    own = mp.affinity_terms.of(pod)
    if old is None:
        helps = new is not None and _speak_of(own.required_affinity, new)
    elif new is None:
        theirs = mp.affinity_terms.of(old).required_anti_affinity
        helps = _speak_of(own.required_anti_affinity, old) or _speak_of(theirs, pod)
    else:
        wanted, unwanted = own.required_affinity, own.required_anti_affinity
        joins = _speak_of(wanted, new) and not _speak_of(wanted, old)
        helps = joins or (_speak_of(unwanted, old) and not _speak_of(unwanted, new))
    return mp.Hint.QUEUE if helps else mp.Hint.QUEUE_SKIP


def node_change(pod: mp.Pod, old: mp.Node | None, new: mp.Node) -> mp.Hint:
    """A node came, or has other labels."""
    own = mp.affinity_terms.of(pod)
    wanted = [term.topology_key for term in own.required_affinity]
    unwanted = [term.topology_key for term in own.required_anti_affinity]
    if old is None:
        helps = bool(unwanted) or any(key in new.labels for key in wanted)
    else:
        helps = any(
            key in new.labels and old.labels.get(key) != new.labels[key] for key in wanted
        ) or any(key in old.labels and new.labels.get(key) != old.labels[key] for key in unwanted)
    return mp.Hint.QUEUE if helps else mp.Hint.QUEUE_SKIP


def _has_place(pod: mp.Pod) -> bool:
    """Whether a pod is on a node, or promised to one."""
    return bool(pod.node_name or pod.status.nominated_node_name)


def _speak_of(terms: Terms, pod: mp.Pod) -> bool:
    """Whether all terms speak of a pod; no terms speak of nobody."""
    return bool(terms) and all(term.matches(pod.namespace, pod.labels) for term in terms)
