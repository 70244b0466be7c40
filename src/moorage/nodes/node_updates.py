"""What an update of a node object changes for the node table."""

from moorage.api.node import Node


def differs(old: Node, new: Node) -> bool:
    """Whether an update changed anything that a plugin may read; a heartbeat does not."""
    return (
        old.labels != new.labels
        or old.spec != new.spec
        or old.status != new.status
        or old.metadata.annotations != new.metadata.annotations
    )


def moves_domains(old: Node, new: Node) -> bool:
    """Whether an update may move a node to other topology domains, or change its eligibility."""
    return old.labels != new.labels or old.spec.taints != new.spec.taints
