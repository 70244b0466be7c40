"""Quantities, names of resources, and the requests and limits of containers and pods."""

from collections.abc import Mapping

from moorage.api import labels, quantity, requests
from moorage.api.validation import field_errors as fe
from moorage.api.validation.field_errors import FieldErrors, Fields

CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
POD_LEVEL_RESOURCES = ("cpu", "hugepages-", "memory")
_COUNTED = frozenset(
    {
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_QUOTA_RESOURCES = _COUNTED | {
    *CONTAINER_RESOURCES,
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
}
_STANDARD_RESOURCES = _QUOTA_RESOURCES | {"storage"}
_HUGE_PAGES, _REQUESTS_HUGE_PAGES = "hugepages-", "requests.hugepages-"
INTEGER_RULE = "must be an integer"
_NO_LIMIT = "Limit must be set for non overcommitable resources"


def is_native(name: str) -> bool:
    """Whether a resource is Kubernetes' own."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Whether a resource has the name of an extended one."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not labels.key_problems(f"requests.{name}")


def may_be_overcommitted(name: str) -> bool:
    """Whether requests of a resource may be less than its limits."""
    return is_native(name) and not name.startswith(_HUGE_PAGES)


def is_counted_in_integers(name: str) -> bool:
    """Whether an amount of a resource must be a whole number."""
    return name in _COUNTED or is_extended(name)


def resource_name(name: str, path: str) -> FieldErrors:
    """A name of a resource of any sort."""
    problems = labels.key_problems(name)
    for problem in problems:
        yield fe.invalid(path, name, problem)
    if not problems and "/" not in name and not _is_standard(name):
        yield fe.invalid(path, name, "must be a standard resource type or fully qualified")


def container_resource_name(name: str, path: str) -> FieldErrors:
    """A name of a resource that a container can have."""
    yield from resource_name(name, path)
    if "/" not in name:
        if name not in CONTAINER_RESOURCES and not name.startswith(_HUGE_PAGES):
            yield fe.invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield fe.invalid(path, name, "doesn't follow extended resource name standard")


def quota_resource_name(name: str, path: str) -> FieldErrors:
    """A name of a resource that a quota can limit."""
    yield from resource_name(name, path)
    huge = name.startswith((_HUGE_PAGES, _REQUESTS_HUGE_PAGES))
    if "/" not in name and name not in _QUOTA_RESOURCES and not huge:
        yield fe.invalid(path, name, "must be a standard resource for quota")


def _is_standard(name: str) -> bool:
    return name in _STANDARD_RESOURCES or name.startswith((_HUGE_PAGES, _REQUESTS_HUGE_PAGES))


def nano(value: object) -> int | None:
    """The exact amount of a quantity; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return quantity.nano(value)
    except ValueError:
        return None


def amount(name: str, value: object, path: str, key: str = "") -> FieldErrors:
    """A quantity that is not negative, and whole if its resource is counted."""
    count = nano(value)
    if count is None:
        return
    path = key or f"{path}[{name}]"
    if count < 0:
        yield fe.invalid(path, fe.shown_quantity(value), fe.NOT_NEGATIVE)
    if count % quantity.NANO and is_counted_in_integers(name):
        yield fe.invalid(path, fe.shown_quantity(value), INTEGER_RULE)


def positive(value: object, path: str) -> FieldErrors:
    """A quantity above 0."""
    count = nano(value)
    if count is not None and count <= 0:
        yield fe.invalid(path, fe.shown_quantity(value), "must be greater than zero")


def readable(amounts: Fields, path: str) -> FieldErrors:
    """Quantities that can be read and that fit into 64 bits.

    An API server refuses the first when it decodes an object; it computes with 0 for the second.
    """
    for name, value in amounts.items():
        try:
            count = quantity.nano(value)
        except (ValueError, TypeError) as error:
            yield fe.FieldError(fe.join_path(path, name), "FieldValueInvalid", str(error))
            continue
        step = quantity.MICRO if name == "cpu" else quantity.NANO
        if abs(count) > quantity.INT64_MAX * step:
            yield fe.invalid(fe.join_path(path, name), str(value)[:60], "must fit into 64 bits")


# Requests and limits


def container_resources(resources: Fields, claims: set[str], path: str) -> FieldErrors:
    """The requests, limits and device claims of a container."""
    yield from _requirements(resources, path, container_resource_name)
    yield from _claims(fe.items(resources, "claims"), claims, f"{path}.claims")


def pod_resources(spec: Fields, path: str) -> FieldErrors:
    """The requests and limits of a whole pod, which its containers must not exceed."""
    resources = fe.optional(spec, "resources")
    if resources is None:
        return
    path = f"{path}.resources"
    if fe.is_set(resources, "claims"):
        yield fe.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from _requirements(resources, path, _pod_resource_name)
    requested = fe.mapping(resources, "requests")
    for name, total in sorted(_container_totals(spec).items()):
        given = nano(requested.get(name))
        if given is not None and given < total:
            needed = fe.shown_quantity(quantity.from_nano(total))
            rule = f"must be greater than or equal to aggregate container requests of {needed}"
            yield fe.invalid(f"{path}.requests[{name}]", fe.shown_quantity(requested[name]), rule)
    for field in ("containers", "initContainers"):
        for i, container in enumerate(fe.items(spec, field)):
            yield from _within_pod(container, resources, f"{path}.{field}[{i}]")


def _within_pod(container: Fields, resources: Fields, path: str) -> FieldErrors:
    limits = fe.mapping(resources, "limits")
    for name, value in fe.mapping(fe.mapping(container, "resources"), "limits").items():
        own, whole = nano(value), nano(limits.get(name))
        if own is not None and whole is not None and own > whole:
            rule = f"must be less than or equal to pod limits of {fe.shown_quantity(limits[name])}"
            yield fe.invalid(f"{path}[{name}].limits", fe.shown_quantity(value), rule)


def _container_totals(spec: Fields) -> dict[str, int]:
    found: dict[str, int] = {}
    for container in fe.items(spec, "containers"):
        amounts = fe.mapping(fe.mapping(container, "resources"), "requests")
        for name, value in amounts.items():
            if requests.has_pod_level_form(name):
                found[name] = found.get(name, 0) + (nano(value) or 0)
    return found


def _pod_resource_name(name: str, path: str) -> FieldErrors:
    errors = list(resource_name(name, path))
    yield from errors
    if not errors and not requests.has_pod_level_form(name):
        yield fe.not_supported(path, name, POD_LEVEL_RESOURCES)


def _requirements(resources: Fields, path: str, check_name: fe.Check) -> FieldErrors:
    limits, requested = fe.mapping(resources, "limits"), fe.mapping(resources, "requests")
    if _is_plain(limits, requested):
        return
    for name, value in limits.items():
        yield from _amount(name, value, f"{path}.limits[{name}]", check_name)
    for name, value in requested.items():
        yield from _amount(name, value, f"{path}.requests[{name}]", check_name)
        yield from _within_limit(name, value, limits, path)
    if any(name.startswith(_HUGE_PAGES) for name in (*limits, *requested)) and not any(
        name in amounts for name in ("cpu", "memory") for amounts in (limits, requested)
    ):
        yield fe.forbidden(path, "HugePages require cpu or memory")


def _is_plain(limits: Fields, requested: Fields) -> bool:
    """Whether these are amounts of cpu and memory without errors, as most are."""
    limit_counts = {}
    for name, value in limits.items():
        count = nano(value)
        if name not in CONTAINER_RESOURCES or count is None or count < 0:
            return False
        limit_counts[name] = count
    for name, value in requested.items():
        count = nano(value)
        if name not in CONTAINER_RESOURCES or count is None or count < 0:
            return False
        if count > limit_counts.get(name, count):
            return False
    return True


def _amount(name: str, value: object, path: str, check_name: fe.Check) -> FieldErrors:
    yield from check_name(name, path)
    yield from amount(name, value, path, path)
    if name.startswith(_HUGE_PAGES):
        size, count = nano(name.removeprefix(_HUGE_PAGES)), nano(value)
        if size and count is not None and (count % size or count <= 0):
            text = fe.shown_quantity(value)
            rule = f"{text} is not positive integer multiple of {name}"
            yield fe.invalid(path, text, rule)


def _within_limit(name: str, value: object, limits: Mapping[str, object], path: str) -> FieldErrors:
    limit, request = nano(limits.get(name)), nano(value)
    if request is None:
        return
    flexible = may_be_overcommitted(name)
    if limit is not None:
        if request > limit or (request < limit and not flexible):
            relation = "less than or equal" if flexible else "equal"
            shown = fe.shown_quantity(limits[name])
            rule = f"must be {relation} to {name} limit of {shown}"
            yield fe.invalid(f"{path}.requests", fe.shown_quantity(value), rule)
    elif not flexible:
        yield fe.required(f"{path}.limits", _NO_LIMIT)


def _claims(claims: list[Fields], known: set[str], path: str) -> FieldErrors:
    seen = set()
    for i, claim in enumerate(claims):
        name, request = fe.text(claim, "name"), fe.text(claim, "request")
        if not name:
            yield fe.required(f"{path}[{i}]")
            continue
        full = f"{name}/{request}" if request else name
        if full in seen or name in seen:
            yield fe.duplicate(f"{path}[{i}]", full)
        seen.add(full)
        if name not in known:
            rule = "must be one of the names in pod.spec.resourceClaims"
            yield fe.not_found(f"{path}[{i}]", name, rule if known else f"{rule} which is empty")


def quantities(amounts: Fields, path: str, check_name: fe.Check) -> FieldErrors:
    """Amounts by resource name."""
    for name, value in amounts.items():
        yield from check_name(name, f"{path}[{name}]")
        yield from amount(name, value, path)
