"""The API access that a scheduler needs: every call of the live shell, as RBAC rules.

`moorage config rbac` prints these rules, and tests compare deploy/base/roles.yaml with them. A new
call to the API server needs a line here, or in the `permissions` of the plugin that requests it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.api.config import SchedulerConfiguration, feature_gates
from moorage.api.config.plugin_sets import NO_GATES
from moorage.framework.points import Permission
from moorage.live import kinds

Plugins = dict[str, type[Any]]

RBAC = "rbac.authorization.k8s.io/v1"

WATCH = ("list", "watch")
READ = ("get", "list", "watch")

# performer.py and event_recorder.py
WRITES = (
    Permission("", "pods", ("get", "delete")),
    Permission("", "pods/binding", ("create",)),
    Permission("", "pods/status", ("patch",)),
    Permission("events.k8s.io", "events", ("create", "patch")),
)
POD_GROUPS = (Permission("scheduling.k8s.io", "podgroups/status", ("patch",)),)
# authorization.py
REVIEWS = (
    Permission("authentication.k8s.io", "tokenreviews", ("create",)),
    Permission("authorization.k8s.io", "subjectaccessreviews", ("create",)),
)


def cluster(plugins: Plugins, gates: Mapping[str, bool] = NO_GATES) -> list[Permission]:
    """The cluster-wide permissions of a scheduler with these plugins and feature gates."""
    found = kinds.watched(plugins, gates)
    watched = [Permission(kind.group, kind.plural, WATCH) for kind, _ in found]
    declared = [each for cls in plugins.values() for each in getattr(cls, "permissions", ())]
    groups = POD_GROUPS if gates.get(feature_gates.GENERIC_WORKLOAD) else ()
    return [*watched, *WRITES, *groups, *declared, *REVIEWS]


def read_only(
    plugins: Plugins, name: str, gates: Mapping[str, bool] = NO_GATES
) -> list[dict[str, Any]]:
    """The ClusterRole that a shadow with these plugins and feature gates needs."""
    found = kinds.watched(plugins, gates)
    watched = [Permission(kind.group, kind.plural, READ) for kind, _ in found]
    return [_role("ClusterRole", {"name": name}, watched)]


def lease(configuration: SchedulerConfiguration) -> list[Permission]:
    """Permissions in the namespace of the lease; `create` cannot be limited by name."""
    election = configuration.leader_election
    if not election.leader_elect:
        return []
    return [
        Permission("coordination.k8s.io", "leases", ("create",)),
        Permission("coordination.k8s.io", "leases", ("get", "update"), (election.resource_name,)),
    ]


def rules(permissions: Iterable[Permission]) -> list[dict[str, Any]]:
    """Permissions as the rules of a role: one rule per group and set of verbs."""
    verbs: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for each in permissions:
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
    configuration: SchedulerConfiguration, plugins: Plugins, name: str
) -> list[dict[str, Any]]:
    """The ClusterRole and the Role that a scheduler of this configuration needs."""
    made = [_role("ClusterRole", {"name": name}, cluster(plugins, configuration.feature_gates))]
    if locking := lease(configuration):
        namespace = configuration.leader_election.resource_namespace
        made.append(_role("Role", {"name": f"{name}-leader", "namespace": namespace}, locking))
    return made


def _role(kind: str, meta: dict[str, str], permissions: list[Permission]) -> dict[str, Any]:
    return {"apiVersion": RBAC, "kind": kind, "metadata": meta, "rules": rules(permissions)}
