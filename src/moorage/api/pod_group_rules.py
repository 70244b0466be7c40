"""The rules of pod groups and workloads: (field, value, rule) per violation.

An empty rule means that the field is required, as in the API server's validation.
"""

from collections.abc import Iterator
from typing import Any

from moorage.api import labels
from moorage.api.admission import HIGHEST_USER_PRIORITY
from moorage.api.pod_groups import (
    DISRUPTION_MODES,
    MAX_RESOURCE_CLAIMS,
    MAX_TEMPLATES,
    MAX_TOPOLOGY_CONSTRAINTS,
    PodGroup,
    PodGroupResourceClaim,
    PodGroupSpec,
    PodGroupTemplate,
    Workload,
)

FieldErrors = Iterator[tuple[str, Any, str]]

_ONE_POLICY = "exactly one of `basic` or `gang` is required"
_ONE_CLAIM = "exactly one of `resourceClaimName` or `resourceClaimTemplateName` is required"


def validate_pod_group(group: PodGroup) -> FieldErrors:
    """A PodGroup."""
    spec = group.spec
    ref = spec.pod_group_template_ref
    if ref is not None:
        path = "spec.podGroupTemplateRef.workload"
        if ref.workload is None:
            yield path, "", ""
        else:
            yield from _name(f"{path}.workloadName", ref.workload.workload_name)
            name = ref.workload.pod_group_template_name
            yield from _name(f"{path}.podGroupTemplateName", name)
    yield from _group(spec, "spec")


def validate_workload(workload: Workload) -> FieldErrors:
    """A Workload."""
    spec = workload.spec
    if (controller := spec.controller_ref) is not None:
        for field, value in (("kind", controller.kind), ("name", controller.name)):
            if not value:
                yield f"spec.controllerRef.{field}", "", ""
    path = "spec.podGroupTemplates"
    if not spec.pod_group_templates:
        yield path, "", ""
    yield from _at_most(path, len(spec.pod_group_templates), MAX_TEMPLATES)
    seen: set[str] = set()
    for i, template in enumerate(spec.pod_group_templates):
        yield from _name(f"{path}[{i}].name", template.name)
        if template.name in seen:
            yield f"{path}[{i}].name", template.name, "Duplicate value"
        seen.add(template.name)
        yield from _group(template, f"{path}[{i}]")


def _group(spec: PodGroupSpec | PodGroupTemplate, path: str) -> FieldErrors:
    policy = spec.scheduling_policy
    if (policy.basic is None) == (policy.gang is None):
        yield f"{path}.schedulingPolicy", "", _ONE_POLICY
    if policy.gang is not None and policy.gang.min_count < 1:
        count = policy.gang.min_count
        yield f"{path}.schedulingPolicy.gang.minCount", count, "must be greater than or equal to 1"
    constraints = spec.scheduling_constraints
    topology = () if constraints is None else constraints.topology
    here = f"{path}.schedulingConstraints.topology"
    yield from _at_most(here, len(topology), MAX_TOPOLOGY_CONSTRAINTS)
    for i, constraint in enumerate(topology):
        for rule in labels.key_problems(constraint.key) if constraint.key else ("",):
            yield f"{here}[{i}].key", constraint.key, rule
    yield from _at_most(f"{path}.resourceClaims", len(spec.resource_claims), MAX_RESOURCE_CLAIMS)
    for i, claim in enumerate(spec.resource_claims):
        yield from _claim(f"{path}.resourceClaims[{i}]", claim)
    if spec.disruption_mode not in (None, "", *DISRUPTION_MODES):
        rule = 'supported values: "Pod", "PodGroup"'
        yield f"{path}.disruptionMode", spec.disruption_mode, rule
    if spec.priority is not None and spec.priority > HIGHEST_USER_PRIORITY:
        rule = f"must be less than or equal to {HIGHEST_USER_PRIORITY}"
        yield f"{path}.priority", spec.priority, rule


def _claim(path: str, claim: PodGroupResourceClaim) -> FieldErrors:
    yield from _name(f"{path}.name", claim.name)
    if (claim.resource_claim_name is None) == (claim.resource_claim_template_name is None):
        yield path, "", _ONE_CLAIM


def _name(path: str, name: str) -> FieldErrors:
    for rule in labels.subdomain_problems(name) if name else ("",):
        yield path, name, rule


def _at_most(path: str, count: int, most: int) -> FieldErrors:
    if count > most:
        yield path, count, f"must have at most {most} items"
