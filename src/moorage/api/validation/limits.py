"""Quotas, limit ranges, disruption budgets, priority classes and runtime classes."""

from moorage.api import labels, quantity
from moorage.api.admission import HIGHEST_USER_PRIORITY, SYSTEM_PRIORITIES
from moorage.api.validation import amounts, names, placement
from moorage.api.validation import field_errors as fe
from moorage.api.validation.field_errors import FieldErrors, Fields

_POD_SCOPES = ("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass")
_SCOPES = (*_POD_SCOPES, "BestEffort", "CrossNamespacePodAffinity", "VolumeAttributesClass")
_CONFLICTS = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_POD_RESOURCES = frozenset(
    {
        "pods",
        "cpu",
        "memory",
        "ephemeral-storage",
        *(
            f"{prefix}.{name}"
            for prefix in ("requests", "limits")
            for name in ("cpu", "memory", "ephemeral-storage")
        ),
    }
)
_CLAIM_RESOURCES = ("persistentvolumeclaims", "requests.storage")
_EXISTS_ONLY = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")


# ResourceQuota


def validate_quota(quota: Fields) -> FieldErrors:
    """A ResourceQuota."""
    spec = fe.mapping(quota, "spec")
    hard = fe.mapping(spec, "hard")
    yield from amounts.quantities(hard, "spec.hard", amounts.quota_resource_name)
    scopes = fe.texts(spec, "scopes")
    for scope in scopes:
        if scope not in _SCOPES:
            yield fe.invalid("spec.scopes", scopes, "unsupported scope")
        for name in sorted(hard):
            if not _tracks(scope, name):
                yield fe.invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    yield from _conflicts(scopes, scopes, "spec.scopes")
    if (selector := fe.optional(spec, "scopeSelector")) is not None:
        yield from _scope_selector(selector, hard, "spec.scopeSelector.matchExpressions")


def _tracks(scope: str, name: str) -> bool:
    """Whether a scope can select the objects that use a resource."""
    if "/" in name:
        return True
    if scope in (*_POD_SCOPES, "CrossNamespacePodAffinity"):
        return name in _POD_RESOURCES or name.startswith(("hugepages-", "requests.hugepages-"))
    if scope == "BestEffort":
        return name == "pods"
    return scope != "VolumeAttributesClass" or name in _CLAIM_RESOURCES


def _conflicts(scopes: list[str], shown: list[str], path: str) -> FieldErrors:
    for pair in _CONFLICTS:
        if set(pair) <= set(scopes):
            yield fe.invalid(path, shown, "conflicting scopes")


def _scope_selector(selector: Fields, hard: Fields, path: str) -> FieldErrors:
    expressions = fe.items(selector, "matchExpressions")
    for each in expressions:
        scope, operator = fe.text(each, "scopeName"), fe.text(each, "operator")
        values = fe.texts(each, "values")
        if scope not in _SCOPES:
            yield fe.invalid(f"{path}.scopeName", scope, "unsupported scope")
        for name in sorted(hard):
            if not _tracks(scope, name):
                yield fe.invalid(path, selector, "unsupported scope applied to resource")
        if operator != "Exists" and scope not in ("PriorityClass", "VolumeAttributesClass"):
            yield fe.invalid(f"{path}.operator", operator, _EXISTS_ONLY)
        if operator in ("In", "NotIn"):
            if not values:
                rule = "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                yield fe.required(f"{path}.values", f"{rule}selector")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                rule = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope "
                yield fe.invalid(f"{path}.values", values, f"{rule}selector")
        else:
            yield fe.invalid(f"{path}.operator", operator, "not a valid selector operator")
    scopes = [fe.text(each, "scopeName") for each in expressions]
    yield from _conflicts(scopes, scopes, path)


# LimitRange


def validate_limit_range(limit_range: Fields) -> FieldErrors:
    """A LimitRange."""
    seen: set[str] = set()
    for i, limit in enumerate(fe.items(fe.mapping(limit_range, "spec"), "limits")):
        path, kind = f"spec.limits[{i}]", fe.text(limit, "type")
        problems = labels.key_problems(kind)
        for problem in problems:
            yield fe.invalid(f"{path}.type", kind, problem)
        if not problems and "/" not in kind and kind not in _LIMIT_TYPES:
            rule = "must be a standard limit type or fully qualified"
            yield fe.invalid(f"{path}.type", kind, rule)
        if kind in seen:
            yield fe.duplicate(f"{path}.type", kind)
        seen.add(kind)
        yield from _limit(limit, kind, path)


def _limit(limit: Fields, kind: str, path: str) -> FieldErrors:
    fields = ["max", "min"]
    if kind == "Pod":
        for field in ("default", "defaultRequest"):
            if fe.mapping(limit, field):
                rule = "may not be specified when `type` is 'Pod'"
                yield fe.forbidden(f"{path}.{field}", rule)
    else:
        fields += ["default", "defaultRequest"]
    fields.append("maxLimitRequestRatio")
    in_pods = kind in ("Pod", "Container")
    check = amounts.container_resource_name if in_pods else amounts.resource_name
    given = {field: fe.mapping(limit, field) for field in fields}
    for field, values in given.items():
        for name in values:
            yield from check(name, f"{path}.{field}[{name}]")
    if kind == "PersistentVolumeClaim" and not any(
        "storage" in given[field] for field in ("min", "max")
    ):
        rule = "either minimum or maximum storage value is required, but neither was provided"
        yield fe.required(f"{path}.limits", rule)
    for name in sorted({name for values in given.values() for name in values}):
        found = {
            field: (count, fe.shown_quantity(values[name]))
            for field, values in given.items()
            if name in values and (count := amounts.nano(values[name])) is not None
        }
        yield from _bounds(name, found, path)


def _bounds(name: str, found: dict[str, tuple[int, str]], path: str) -> FieldErrors:
    # Smaller, larger, the field that is named, the one whose value is shown, and both in words.
    for small, large, field, shown, words in (
        ("min", "max", "min", "min", ("min", "max")),
        ("min", "defaultRequest", "defaultRequest", "defaultRequest", ("min", "default request")),
        ("defaultRequest", "max", "defaultRequest", "defaultRequest", ("default request", "max")),
        (
            "defaultRequest",
            "default",
            "defaultRequest",
            "defaultRequest",
            ("default request", "default limit"),
        ),
        ("min", "default", "default", "min", ("min", "default")),
        ("default", "max", "default", "max", ("default", "max")),
    ):
        if small in found and large in found and found[small][0] > found[large][0]:
            rule = f"{words[0]} value {found[small][1]} is greater than {words[1]} value "
            yield fe.invalid(f"{path}.{field}[{name}]", found[shown][1], rule + found[large][1])
    if "maxLimitRequestRatio" in found:
        ratio, text = found["maxLimitRequestRatio"]
        here = f"{path}.maxLimitRequestRatio[{name}]"
        if ratio < quantity.NANO:
            yield fe.invalid(here, text, f"ratio {text} is less than 1")
        if "min" in found and "max" in found and found["min"][0] > 0:
            most = found["max"][0] / found["min"][0]
            if ratio / quantity.NANO > most:
                yield fe.invalid(here, text, f"ratio {text} is greater than max/min = {most:f}")
    both = "default" in found and "defaultRequest" in found
    if both and not amounts.may_be_overcommitted(name):
        limit, request = found["default"], found["defaultRequest"]
        if limit[0] != request[0]:
            rule = f"default value {limit[1]} must equal to defaultRequest value {request[1]} in "
            yield fe.invalid(f"{path}.defaultRequest[{name}]", request[1], rule + name)


# Budgets and classes


def validate_budget(budget: Fields) -> FieldErrors:
    """A PodDisruptionBudget."""
    spec = fe.mapping(budget, "spec")
    if fe.is_set(spec, "minAvailable") and fe.is_set(spec, "maxUnavailable"):
        shown = {
            "MinAvailable": spec["minAvailable"],
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec["maxUnavailable"],
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield fe.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    yield from budget_amounts(spec)
    yield from names.label_selector(fe.optional(spec, "selector"), "spec.selector")
    policies = ("AlwaysAllow", "IfHealthyBudget")
    yield from fe.one_of(spec, "spec", "unhealthyPodEvictionPolicy", policies)


def budget_amounts(spec: Fields) -> FieldErrors:
    """The numbers of pods of a budget."""
    for field in ("minAvailable", "maxUnavailable"):
        yield from names.int_or_percent(spec.get(field), f"spec.{field}")
        yield from names.at_most_100_percent(spec.get(field), f"spec.{field}")


def validate_priority_class(priority_class: Fields) -> FieldErrors:
    """A PriorityClass."""
    name = fe.text(fe.mapping(priority_class, "metadata"), "name")
    value = fe.number(priority_class, "value") or 0
    if name.startswith("system-"):
        if name not in SYSTEM_PRIORITIES:
            problem = f"{name} is not a known system priority class"
        elif value != SYSTEM_PRIORITIES[name]:
            problem = f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name]}"
        elif fe.flag(priority_class, "globalDefault"):
            problem = f"globalDefault of {name} PriorityClass must be false"
        else:
            problem = ""
        if problem:
            rule = "priority class names with 'system-' prefix are reserved for system use only. "
            yield fe.forbidden("metadata.name", f"{rule}error: {problem}")
    elif value > HIGHEST_USER_PRIORITY:
        rule = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        yield fe.forbidden("value", rule)
    policies = placement.PREEMPTION_POLICIES
    yield from fe.one_of(priority_class, "", "preemptionPolicy", policies)


def validate_runtime_class(runtime_class: Fields) -> FieldErrors:
    """A RuntimeClass."""
    yield from names.named(names.label_problems, runtime_class, "", "handler")
    overhead = fe.mapping(fe.mapping(runtime_class, "overhead"), "podFixed")
    yield from amounts.quantities(overhead, "overhead.limits", amounts.container_resource_name)
    scheduling = fe.mapping(runtime_class, "scheduling")
    yield from names.label_map(fe.mapping(scheduling, "nodeSelector"), "scheduling.nodeSelector")
    tolerations = fe.items(scheduling, "tolerations")
    yield from placement.tolerations(tolerations, "scheduling.tolerations")
