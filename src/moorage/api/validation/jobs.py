"""Jobs and CronJobs."""

import zoneinfo

from moorage.api import cron
from moorage.api.validation import field_errors as fe
from moorage.api.validation import names, pods, workloads
from moorage.api.validation.field_errors import FieldErrors, Fields

GENERATED_LABEL = "batch.kubernetes.io/controller-uid"
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_MAX_INDEXED_PARALLELISM = _MAX_FAILED_INDEXES = 100_000
_MAX_RULES = 20
_INDEXED = "Indexed"


def validate_job(job: Fields) -> FieldErrors:
    """A Job; one without a selector gets a generated one when it is created."""
    spec = fe.mapping(job, "spec")
    selector = fe.optional(spec, "selector")
    if selector is not None and not fe.flag(spec, "manualSelector"):
        given = fe.mapping(selector, "matchLabels")
        if set(given) != {GENERATED_LABEL} or selector.get("matchExpressions"):
            yield fe.invalid("spec.selector", selector, "`selector` not auto-generated")
    yield from job_spec(spec, "spec")
    yield from names.label_selector(selector, "spec.selector")
    found = workloads.compiled(selector)
    labels = fe.optional(fe.mapping(fe.mapping(spec, "template"), "metadata"), "labels")
    if selector is not None and found is not None and not found.matches(dict(labels or {})):
        field = "spec.template.metadata.labels"
        yield fe.invalid(field, labels, workloads.SELECTOR_MISMATCH)


def job_numbers(spec: Fields, path: str) -> FieldErrors:
    """The counts of a job."""
    yield from fe.not_negative(
        spec,
        path,
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    )
    modes = ("NonIndexed", _INDEXED)
    yield from fe.one_of(spec, path, "completionMode", modes)
    if fe.text(spec, "completionMode") == _INDEXED and not fe.is_set(spec, "completions"):
        yield fe.required(f"{path}.completions", "when completion mode is Indexed")


def job_spec(spec: Fields, path: str) -> FieldErrors:
    """The spec of a job, or of a template of jobs."""
    yield from job_numbers(spec, path)
    limit, most = fe.number(spec, "backoffLimitPerIndex"), fe.number(spec, "maxFailedIndexes")
    if most is not None and limit is None:
        yield fe.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if "managedBy" in spec:
        yield from _managed_by(fe.text(spec, "managedBy"), f"{path}.managedBy")
    if fe.text(spec, "completionMode") == _INDEXED:
        parallelism = fe.number(spec, "parallelism") or 0
        if parallelism > _MAX_INDEXED_PARALLELISM:
            rule = f"must be less than or equal to {_MAX_INDEXED_PARALLELISM} when completion mode "
            yield fe.invalid(f"{path}.parallelism", parallelism, f"{rule}is Indexed")
        completions = fe.number(spec, "completions")
        if most is not None and completions is not None and most > completions:
            rule = "must be less than or equal to completions"
            yield fe.invalid(f"{path}.maxFailedIndexes", most, rule)
    else:
        for field, value in (("backoffLimitPerIndex", limit), ("maxFailedIndexes", most)):
            if value is not None:
                yield fe.invalid(f"{path}.{field}", value, "requires indexed completion mode")
    yield from _failure_policy(spec, f"{path}.podFailurePolicy")
    if (policy := fe.optional(spec, "successPolicy")) is not None:
        yield from _success_policy(spec, policy, f"{path}.successPolicy")
    with_failures = fe.is_set(spec, "podFailurePolicy")
    supported = ("Failed",) if with_failures else ("Failed", "TerminatingOrFailed")
    yield from fe.one_of(spec, path, "podReplacementPolicy", supported)
    template = fe.mapping(spec, "template")
    yield from pods.template(template, f"{path}.template")
    yield from _restart_policy(spec, template, f"{path}.template.spec.restartPolicy")


def _managed_by(value: str, path: str) -> FieldErrors:
    domain, slash, rest = value.partition("/")
    if not (domain and slash and rest):
        yield fe.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')


def _restart_policy(spec: Fields, template: Fields, path: str) -> FieldErrors:
    policy = fe.text(fe.mapping(template, "spec"), "restartPolicy")
    if policy in ("", "Always"):
        yield fe.required(path, 'valid values: "OnFailure", "Never"')
    elif policy != "Never" and fe.is_set(spec, "podFailurePolicy"):
        rule = 'only "Never" is supported when podFailurePolicy is specified'
        yield fe.invalid(path, policy, rule)


def _failure_policy(spec: Fields, path: str) -> FieldErrors:
    rules = fe.items(fe.mapping(spec, "podFailurePolicy"), "rules")
    for i, rule in enumerate(rules):
        item, action = f"{path}.rules[{i}]", fe.text(rule, "action")
        if not action:
            listed = " ".join(f'"{each}"' for each in _ACTIONS)
            yield fe.required(f"{item}.action", f"valid values: [{listed}]")
        elif action == "FailIndex" and not fe.is_set(spec, "backoffLimitPerIndex"):
            text = "requires the backoffLimitPerIndex to be set"
            yield fe.invalid(f"{item}.action", action, text)
        elif action not in _ACTIONS:
            yield fe.not_supported(f"{item}.action", action, _ACTIONS)
        codes, conditions = fe.optional(rule, "onExitCodes"), fe.items(rule, "onPodConditions")
        if codes is not None:
            yield from _exit_codes(codes, f"{item}.onExitCodes")
        for j, condition in enumerate(conditions):
            here = f"{item}.onPodConditions[{j}]"
            yield from names.named(lambda _: (), condition, here, "type")
            yield from fe.one_of(condition, here, "status", ("False", "True", "Unknown"))
        if (codes is None) == (not conditions):
            both = "both OnExitCodes and OnPodConditions is not supported"
            one = "one of OnExitCodes and OnPodConditions is required"
            text = f"specifying {one if codes is None else both}"
            yield fe.FieldError(item, "FieldValueInvalid", f"Invalid value: {text}")


def _exit_codes(codes: Fields, path: str) -> FieldErrors:
    operator = fe.text(codes, "operator")
    if operator not in ("In", "NotIn"):
        yield fe.not_supported(f"{path}.operator", operator, ("In", "NotIn"))
    values = codes.get("values")
    values = values if isinstance(values, list) else []
    if not values:
        yield fe.invalid(f"{path}.values", values, "at least one value is required")
    for i, value in enumerate(values):
        if operator == "In" and value == 0:
            yield fe.invalid(f"{path}.values[{i}]", 0, "must not be 0 for the In operator")
        if value in values[:i]:
            yield fe.duplicate(f"{path}.values[{i}]", value)


def _success_policy(spec: Fields, policy: Fields, path: str) -> FieldErrors:
    rules = fe.items(policy, "rules")
    if fe.text(spec, "completionMode") != _INDEXED:
        shown = [
            {
                "SucceededIndexes": rule.get("succeededIndexes"),
                "SucceededCount": rule.get("succeededCount"),
            }
            for rule in rules
        ]
        yield fe.invalid(path, {"Rules": shown}, "requires indexed completion mode")
    elif not rules:
        rule = "at least one rules must be specified when the successPolicy is specified"
        yield fe.required(f"{path}.rules", rule)


# CronJobs


def validate_cron_job(job: Fields) -> FieldErrors:
    """A CronJob."""
    spec = fe.mapping(job, "spec")
    schedule = fe.text(spec, "schedule")
    if not schedule:
        yield fe.required("spec.schedule")
    else:
        yield from _schedule(schedule, "spec.schedule")
    yield from fe.not_negative(spec, "spec", "startingDeadlineSeconds")
    if isinstance(zone := spec.get("timeZone"), str):
        yield from _time_zone(zone, "spec.timeZone")
    yield from fe.one_of(spec, "spec", "concurrencyPolicy", ("Allow", "Forbid", "Replace"))
    template = fe.mapping(fe.mapping(spec, "jobTemplate"), "spec")
    yield from job_spec(template, "spec.jobTemplate.spec")
    if fe.flag(template, "manualSelector"):
        field = "spec.jobTemplate.spec.manualSelector"
        yield fe.not_supported(field, value=True, supported=("nil", "false"))
    limits = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    yield from fe.not_negative(spec, "spec", *limits)


def _schedule(schedule: str, path: str) -> FieldErrors:
    try:
        cron.parse(schedule)
    except ValueError as error:
        yield fe.invalid(path, schedule, str(error))
    if "TZ" in schedule:
        rule = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield fe.invalid(path, schedule, rule)


def _time_zone(zone: str, path: str) -> FieldErrors:
    if not zone:
        yield fe.invalid(path, zone, "timeZone must be nil or non-empty string")
    elif zone.lower() == "local":
        rule = "timeZone must be an explicit time zone as defined in "
        yield fe.invalid(path, zone, f"{rule}https://www.iana.org/time-zones")
    else:
        try:
            zoneinfo.ZoneInfo(zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            yield fe.invalid(path, zone, f"unknown time zone {zone}")
