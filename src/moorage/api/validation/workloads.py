"""Workloads whose pods run until they are deleted: all but jobs."""

from msgspec import convert

from moorage.api import selectors
from moorage.api.meta import LabelSelector
from moorage.api.selectors import Selector, SelectorError
from moorage.api.validation import field_errors as fe
from moorage.api.validation import names, pods, volumes
from moorage.api.validation.field_errors import FieldErrors, Fields

SELECTOR_MISMATCH = "`selector` does not match template `labels`"
_ALWAYS = "Always"


def compiled(selector: Fields | None) -> Selector | None:
    """A label selector that can be matched; None if it is invalid."""
    try:
        typed = None if selector is None else convert(selector, LabelSelector)
        return selectors.compile_label_selector(typed)
    except (SelectorError, ValueError):
        return None


def _matches(selector: Fields | None, template: Fields, path: str) -> FieldErrors:
    labels = fe.optional(fe.mapping(template, "metadata"), "labels")
    found = compiled(selector)
    if found is not None and not found.matches({k: str(v) for k, v in (labels or {}).items()}):
        yield fe.invalid(f"{path}.metadata.labels", labels, SELECTOR_MISMATCH)


def _selected_template(spec: Fields, owner: str, detail: str = "") -> FieldErrors:
    """The selector and the template of a workload that needs both."""
    selector = fe.optional(spec, "selector")
    if selector is None:
        yield fe.required("spec.selector")
    else:
        yield from names.label_selector(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            rule = f"empty selector is invalid for {owner}"
            yield fe.invalid("spec.selector", {}, rule)
    template = fe.mapping(spec, "template")
    if selector is not None and compiled(selector) is None:
        yield fe.invalid("spec.selector", selector, detail)
        return
    if selector is None or selector.get("matchLabels") or selector.get("matchExpressions"):
        yield from _matches(selector, template, "spec.template")
    yield from pods.template(template, "spec.template")


def _restarts(spec: Fields, owner: str) -> FieldErrors:
    """Pods that are replaced when they end must restart their containers."""
    template = fe.mapping(fe.mapping(spec, "template"), "spec")
    policy = fe.text(template, "restartPolicy") or _ALWAYS
    if policy != _ALWAYS and policy in pods.RESTART_POLICIES:
        yield fe.not_supported("spec.template.spec.restartPolicy", policy, (_ALWAYS,))
    if fe.is_set(template, "activeDeadlineSeconds"):
        rule = f"activeDeadlineSeconds in {owner} is not Supported"
        yield fe.forbidden("spec.template.spec.activeDeadlineSeconds", rule)


def _amount(value: object) -> int:
    """The number of an integer or a percentage; 0 if it is neither."""
    if isinstance(value, str):
        digits = value.removesuffix("%")
        return int(digits) if digits.isascii() and digits.isdecimal() else 0
    return value if isinstance(value, int) else 0


def validate_deployment(deployment: Fields) -> FieldErrors:
    """A Deployment."""
    spec = fe.mapping(deployment, "spec")
    yield from fe.not_negative(spec, "spec", "replicas")
    yield from _selected_template(spec, "deployment", "invalid label selector")
    yield from _restarts(spec, "ReplicaSet")
    yield from _deployment_strategy(fe.mapping(spec, "strategy"), "spec.strategy")
    yield from fe.not_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    yield from fe.not_negative(spec, "spec", "progressDeadlineSeconds")
    deadline = fe.number(spec, "progressDeadlineSeconds")
    if deadline is not None and deadline <= (fe.number(spec, "minReadySeconds") or 0):
        rule = "must be greater than minReadySeconds"
        yield fe.invalid("spec.progressDeadlineSeconds", deadline, rule)


def _deployment_strategy(strategy: Fields, path: str) -> FieldErrors:
    kind, rolling = fe.text(strategy, "type"), fe.optional(strategy, "rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            rule = "may not be specified when strategy `type` is 'Recreate'"
            yield fe.forbidden(f"{path}.rollingUpdate", rule)
    elif kind not in ("", "RollingUpdate"):
        shown = {"Type": kind, "RollingUpdate": strategy.get("rollingUpdate")}
        yield fe.not_supported(path, shown, ("Recreate", "RollingUpdate"))
    elif rolling is not None:
        here = f"{path}.rollingUpdate"
        unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        yield from names.int_or_percent(unavailable, f"{here}.maxUnavailable")
        yield from names.int_or_percent(surge, f"{here}.maxSurge")
        # One that is absent is 25%.
        none = unavailable is not None and surge is not None
        if none and not _amount(unavailable) and not _amount(surge):
            rule = "may not be 0 when `maxSurge` is 0"
            yield fe.invalid(f"{here}.maxUnavailable", unavailable, rule)
        yield from names.at_most_100_percent(unavailable, f"{here}.maxUnavailable")


def validate_replica_set(replica_set: Fields) -> FieldErrors:
    """A ReplicaSet."""
    spec = fe.mapping(replica_set, "spec")
    yield from fe.not_negative(spec, "spec", "replicas", "minReadySeconds")
    yield from _selected_template(spec, "deployment", "invalid label selector")
    yield from _restarts(spec, "ReplicaSet")


def validate_daemon_set(daemon_set: Fields) -> FieldErrors:
    """A DaemonSet."""
    spec = fe.mapping(daemon_set, "spec")
    selector, template = fe.optional(spec, "selector"), fe.mapping(spec, "template")
    yield from names.label_selector(selector, "spec.selector")
    yield from _matches(selector, template, "spec.template")
    if selector is not None and not any(selector.values()):
        yield fe.invalid("spec.selector", {}, "empty selector is invalid for daemonset")
    yield from pods.template(template, "spec.template")
    yield from _restarts(spec, "DaemonSet")
    yield from fe.not_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    strategy, path = fe.mapping(spec, "updateStrategy"), "spec.updateStrategy"
    kind, rolling = fe.text(strategy, "type"), fe.optional(strategy, "rollingUpdate")
    if kind not in ("", "RollingUpdate", "OnDelete"):
        shown = {"Type": kind, "RollingUpdate": strategy.get("rollingUpdate")}
        yield fe.not_supported(path, shown, ("RollingUpdate", "OnDelete"))
    elif rolling is not None and kind != "OnDelete":
        yield from _daemon_rolling_update(rolling, f"{path}.rollingUpdate")


def _daemon_rolling_update(rolling: Fields, path: str) -> FieldErrors:
    unavailable, surge = rolling.get("maxUnavailable", 1), rolling.get("maxSurge", 0)
    for field, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
        yield from names.int_or_percent(value, f"{path}.{field}")
        yield from names.at_most_100_percent(value, f"{path}.{field}")
    if _amount(unavailable) and _amount(surge):
        rule = "may not be set when maxUnavailable is non-zero"
        yield fe.invalid(f"{path}.maxSurge", surge, rule)
    elif not _amount(unavailable) and not _amount(surge):
        yield fe.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def validate_stateful_set(stateful_set: Fields) -> FieldErrors:
    """A StatefulSet."""
    spec = fe.mapping(stateful_set, "spec")
    policy = fe.text(spec, "podManagementPolicy")
    if policy not in ("", "OrderedReady", "Parallel"):
        rule = "must be 'OrderedReady' or 'Parallel'"
        yield fe.invalid("spec.podManagementPolicy", policy, rule)
    yield from _stateful_strategy(fe.mapping(spec, "updateStrategy"), "spec.updateStrategy")
    retention = fe.mapping(spec, "persistentVolumeClaimRetentionPolicy")
    for field in ("whenDeleted", "whenScaled"):
        path = "spec.persistentVolumeClaimRetentionPolicy"
        yield from fe.one_of(retention, path, field, ("Retain", "Delete"))
    claims = fe.items(spec, "volumeClaimTemplates")
    for i, claim in enumerate(claims):
        path = f"spec.volumeClaimTemplates[{i}]"
        yield from fe.needed(fe.mapping(claim, "metadata"), f"{path}.metadata", "name")
        yield from volumes.claim_spec(fe.mapping(claim, "spec"), f"{path}.spec")
    yield from fe.not_negative(spec, "spec", "replicas", "minReadySeconds")
    yield from fe.not_negative(fe.mapping(spec, "ordinals"), "spec.ordinals", "start")
    if service := fe.text(spec, "serviceName"):
        yield from names.each_problem(names.label_problems, service, "spec.serviceName")
    yield from _selected_template(_with_claims(spec, claims), "statefulset")
    yield from _restarts(spec, "StatefulSet")


def _with_claims(spec: Fields, claims: list[Fields]) -> Fields:
    """The spec as its pods have it: with volumes for the claim templates."""
    if not claims:
        return spec
    template = fe.mapping(spec, "template")
    pod = fe.mapping(template, "spec")
    claimed = {fe.text(fe.mapping(each, "metadata"), "name") for each in claims}
    listed = [each for each in fe.items(pod, "volumes") if fe.text(each, "name") not in claimed]
    listed += [
        {"name": name, "persistentVolumeClaim": {"claimName": name}}
        for name in sorted(claimed)
        if name
    ]
    return {**spec, "template": {**template, "spec": {**pod, "volumes": listed}}}


def _stateful_strategy(strategy: Fields, path: str) -> FieldErrors:
    kind, rolling = fe.text(strategy, "type"), fe.optional(strategy, "rollingUpdate")
    if kind not in ("", "RollingUpdate", "OnDelete"):
        shown = {"Type": kind, "RollingUpdate": strategy.get("rollingUpdate")}
        yield fe.invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")
    elif kind == "OnDelete" and rolling is not None:
        shown = {
            "Partition": rolling.get("partition", 0),
            "MaxUnavailable": rolling.get("maxUnavailable"),
        }
        rule = "only allowed for updateStrategy 'RollingUpdate'"
        yield fe.invalid(f"{path}.rollingUpdate", shown, rule)
    elif rolling is not None:
        yield from fe.not_negative(rolling, f"{path}.rollingUpdate", "partition")


def validate_replication_controller(controller: Fields) -> FieldErrors:
    """A ReplicationController."""
    spec = fe.mapping(controller, "spec")
    template = fe.optional(spec, "template")
    labels = fe.mapping(fe.mapping(template or {}, "metadata"), "labels")
    selector = fe.mapping(spec, "selector") or labels
    yield from fe.not_negative(spec, "spec", "minReadySeconds")
    if not selector and template is not None:
        yield fe.required("spec.selector")
    yield from fe.not_negative(spec, "spec", "replicas")
    if template is None:
        yield fe.required("spec.template")
        return
    if any(labels.get(key) != value for key, value in selector.items()):
        yield fe.invalid("spec.template.metadata.labels", labels, SELECTOR_MISMATCH)
    yield from pods.template(template, "spec.template")
    yield from _restarts(spec, "ReplicationController")
