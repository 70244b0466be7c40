"""What a scheduler has to be allowed: every call that the live shell makes, as RBAC rules.

Manifests are made from this and checked against it; a new call to the API server gets its line
here, or operators will meet a 403.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from moorage.api.config import SchedulerConfiguration
from moorage.live import kinds

RBAC = "rbac.authorization.k8s.io/v1"


class Access(NamedTuple):
    """A resource, and what is done to it; `names` if it is only to some of them."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


WATCH = ("list", "watch")

# calls.py and event_recorder.py
WRITES = (
    Access("", "pods", ("get", "delete")),
    Access("", "pods/binding", ("create",)),
    Access("", "pods/status", ("patch",)),
    Access("events.k8s.io", "events", ("create", "patch")),
)
# calls.py, for who gives volumes to claims
VOLUME_WRITES = (
    Access("", "persistentvolumes", ("patch",)),
    Access("", "persistentvolumeclaims", ("patch",)),
)
# authorization.py
REVIEWS = (
    Access("authentication.k8s.io", "tokenreviews", ("create",)),
    Access("authorization.k8s.io", "subjectaccessreviews", ("create",)),
)


def cluster(plugins: dict[str, type[Any]]) -> list[Access]:
    """What is done all over the cluster by a scheduler with these plugins."""
    watched = [Access(kind.group, kind.plural, WATCH) for kind, _ in kinds.watched(plugins)]
    writes = (*WRITES, *VOLUME_WRITES) if "VolumeBinding" in plugins else WRITES
    return [*watched, *writes, *REVIEWS]


def lease(configuration: SchedulerConfiguration) -> list[Access]:
    """What is done in the namespace of the lease; lease.py. A create cannot be told by name."""
    election = configuration.leader_election
    if not election.leader_elect:
        return []
    return [
        Access("coordination.k8s.io", "leases", ("create",)),
        Access("coordination.k8s.io", "leases", ("get", "update"), (election.resource_name,)),
    ]


def rules(accesses: Iterable[Access]) -> list[dict[str, Any]]:
    """Access as the rules of a role: a rule for each group and set of verbs."""
    verbs: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for each in accesses:
        known = verbs.setdefault((each.group, each.resource, each.names), [])
        known += [verb for verb in each.verbs if verb not in known]
    grouped: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, resource, names), allowed in verbs.items():
        grouped.setdefault((group, tuple(allowed), names), []).append(resource)
    return [
        {"apiGroups": [group], "resources": sorted(resources), "verbs": list(allowed)}
        | ({"resourceNames": list(names)} if names else {})
        for (group, allowed, names), resources in sorted(grouped.items())
    ]


def roles(
    configuration: SchedulerConfiguration, plugins: dict[str, type[Any]], name: str
) -> list[dict[str, Any]]:
    """The ClusterRole and the Role that a scheduler of this configuration needs."""
    made = [
        {
            "apiVersion": RBAC,
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": rules(cluster(plugins)),
        }
    ]
    if locking := lease(configuration):
        namespace = configuration.leader_election.resource_namespace
        made.append(
            {
                "apiVersion": RBAC,
                "kind": "Role",
                "metadata": {"name": f"{name}-leader", "namespace": namespace},
                "rules": rules(locking),
            }
        )
    return made
