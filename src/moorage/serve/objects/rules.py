"""What must hold within an object of each kind: (field, value, rule) for what does not."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from moorage.api import admission, labels, quantity, selectors
from moorage.api.meta import KubeObject, LabelSelector
from moorage.api.pod import Pod, PodSpec
from moorage.api.policy import PodDisruptionBudget
from moorage.api.selectors import SelectorError
from moorage.serve.objects import names
from moorage.serve.objects.structs import (
    Definition,
    MapSelectorWorkload,
    Workload,
    WorkloadSpec,
)

Problems = Iterable[tuple[str, Any, str]]


def _pod(read: KubeObject) -> Problems:
    assert isinstance(read, Pod)
    return _pod_spec(read.spec, "spec")


def _pod_spec(spec: PodSpec, path: str) -> Iterator[tuple[str, Any, str]]:
    if not spec.containers:
        yield f"{path}.containers", "", ""
    seen: set[str] = set()
    for field, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
    ):
        for i, container in enumerate(containers):
            place = f"{path}.{field}[{i}]"
            if not container.name:
                yield f"{place}.name", "", ""
            for wrong in names.label_problems(container.name) if container.name else ():
                yield f"{place}.name", container.name, wrong
            if container.name in seen:
                yield f"{place}.name", container.name, "names of containers must differ"
            seen.add(container.name)
            yield from _resources(container.resources.requests, container.resources.limits, place)
    grace = spec.termination_grace_period_seconds
    if grace is not None and grace < 0:
        field = f"{path}.terminationGracePeriodSeconds"
        yield field, grace, "must be greater than or equal to 0"
    for i, constraint in enumerate(spec.topology_spread_constraints):
        place = f"{path}.topologySpreadConstraints[{i}]"
        if constraint.max_skew <= 0:
            yield f"{place}.maxSkew", constraint.max_skew, "must be greater than zero"
        if not constraint.topology_key:
            yield f"{place}.topologyKey", "", ""
        if constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
            yield (
                f"{place}.whenUnsatisfiable",
                constraint.when_unsatisfiable,
                'supported values: "DoNotSchedule", "ScheduleAnyway"',
            )
    for key, value in (spec.node_selector or {}).items():
        for wrong in (*labels.key_problems(key), *labels.value_problems(value)):
            yield f"{path}.nodeSelector", key, wrong


def _resources(
    asked: dict[str, Any], limits: dict[str, Any], path: str
) -> Iterator[tuple[str, Any, str]]:
    for field, amounts in (("requests", asked), ("limits", limits)):
        for name, amount in amounts.items():
            place = f"{path}.resources.{field}[{name}]"
            for wrong in labels.key_problems(name):
                yield place, name, wrong
            nano = quantity.nano(amount)
            if nano < 0:
                yield place, amount, "must be greater than or equal to 0"
            if nano > quantity.INT64_MAX * quantity.NANO:
                yield place, amount, "must fit into 64 bits"
            if field == "requests" and name in limits and nano > quantity.nano(limits[name]):
                rule = f"must be less than or equal to {name} limit of {limits[name]}"
                yield place, amount, rule


def _workload(read: KubeObject) -> Iterator[tuple[str, Any, str]]:
    assert isinstance(read, Workload | MapSelectorWorkload)
    spec = read.spec
    if spec.replicas is not None and spec.replicas < 0:
        yield "spec.replicas", spec.replicas, "must be greater than or equal to 0"
    if isinstance(spec, WorkloadSpec):
        yield from _numbers(spec)
    if spec.template is None:
        yield "spec.template", "", ""
        return
    template = Pod(metadata=spec.template.metadata, spec=spec.template.spec)
    if (fault := admission.bad_quantity(template)) is not None:
        yield f"spec.template.{fault[0]}", "", fault[1]
        return
    yield from _pod_spec(spec.template.spec, "spec.template.spec")
    selector = spec.selector
    if isinstance(selector, LabelSelector):
        try:
            compiled = selectors.compile_label_selector(selector)
        except SelectorError as error:
            yield "spec.selector", msgspec.to_builtins(selector), str(error)
            return
    elif selector:
        compiled = selectors.selector_from_map(selector)
    else:
        return
    if read.kind != "Job" and not compiled.matches(spec.template.metadata.labels):
        yield (
            "spec.template.metadata.labels",
            spec.template.metadata.labels,
            "`selector` does not match template `labels`",
        )


def _selected_workload(read: KubeObject) -> Iterator[tuple[str, Any, str]]:
    assert isinstance(read, Workload)
    if read.spec.selector is None:
        yield "spec.selector", "", ""
    elif not read.spec.selector.match_labels and not read.spec.selector.match_expressions:
        yield "spec.selector", {}, "empty selector is invalid here"
    yield from _workload(read)


_SHARE = "must be a whole number or a percentage (e.g. '1', '50%')"


def _is_share(value: int | str | None) -> bool:
    """Whether it is a number, or a percentage that can be read; nothing is fine, too."""
    if isinstance(value, str):
        return value.endswith("%") and value[:-1].isascii() and value[:-1].isdecimal()
    return value is None or value >= 0


def _numbers(spec: WorkloadSpec) -> Iterator[tuple[str, Any, str]]:
    """What controllers reckon with."""
    for name, strategy in (("strategy", spec.strategy), ("updateStrategy", spec.update_strategy)):
        rolling, path = strategy.rolling_update, f"spec.{name}.rollingUpdate"
        for field, share in (
            ("maxSurge", rolling.max_surge),
            ("maxUnavailable", rolling.max_unavailable),
        ):
            if not _is_share(share):
                yield f"{path}.{field}", share, _SHARE
        if rolling.partition is not None and rolling.partition < 0:
            yield f"{path}.partition", rolling.partition, "must be greater than or equal to 0"
    for field, number in (
        ("minReadySeconds", spec.min_ready_seconds),
        ("revisionHistoryLimit", spec.revision_history_limit),
        ("parallelism", spec.parallelism),
        ("completions", spec.completions),
        ("backoffLimit", spec.backoff_limit),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished),
        ("ordinals.start", spec.ordinals.start),
    ):
        if number is not None and number < 0:
            yield f"spec.{field}", number, "must be greater than or equal to 0"
    for index, claim in enumerate(spec.volume_claim_templates):
        if not claim.metadata.name:
            yield f"spec.volumeClaimTemplates[{index}].metadata.name", "", ""


def _budget(read: KubeObject) -> Iterator[tuple[str, Any, str]]:
    assert isinstance(read, PodDisruptionBudget)
    spec = read.spec
    if spec.min_available is not None and spec.max_unavailable is not None:
        yield "spec", {}, "minAvailable and maxUnavailable cannot be both set"
    for field, value in (
        ("minAvailable", spec.min_available),
        ("maxUnavailable", spec.max_unavailable),
    ):
        if not _is_share(value):
            yield f"spec.{field}", value, _SHARE
    try:
        selectors.compile_label_selector(spec.selector)
    except SelectorError as error:
        yield "spec.selector", msgspec.to_builtins(spec.selector), str(error)


def _definition(read: KubeObject) -> Iterator[tuple[str, Any, str]]:
    assert isinstance(read, Definition)
    spec = read.spec
    if read.name != f"{spec.names.plural}.{spec.group}":
        yield "metadata.name", read.name, 'must be spec.names.plural+"."+spec.group'
    if "." not in spec.group or labels.subdomain_problems(spec.group):
        yield "spec.group", spec.group, "should be a domain with at least one dot"
    if spec.scope not in ("Namespaced", "Cluster"):
        yield "spec.scope", spec.scope, 'supported values: "Cluster", "Namespaced"'
    for field, value in (("plural", spec.names.plural), *(("kind", k) for k in (spec.names.kind,))):
        if names.label_problems(value.lower()):
            yield f"spec.names.{field}", value, "must be a DNS label"
    if sum(version.storage for version in spec.versions) != 1:
        yield "spec.versions", [], "must have exactly one version marked as storage version"
    for version in spec.versions:
        if names.label_problems(version.name):
            yield "spec.versions[].name", version.name, "must be a DNS label"


RULES: dict[str, Callable[[KubeObject], Problems]] = {
    "Pod": _pod,
    "Deployment": _selected_workload,
    "ReplicaSet": _selected_workload,
    "StatefulSet": _selected_workload,
    "DaemonSet": _selected_workload,
    "Job": _workload,
    "ReplicationController": _workload,
    "PodDisruptionBudget": _budget,
    "CustomResourceDefinition": _definition,
}
