"""Names, labels, selectors and metadata."""

import ipaddress
import re
from collections.abc import Callable, Iterable

from moorage.api import labels
from moorage.api.validation import field_errors as fe
from moorage.api.validation.field_errors import FieldErrors, Fields

BAD_OPERATOR = "not a valid selector operator"

Rule = Callable[[str], tuple[str, ...]]
"""Returns what is wrong with a text; nothing if it is valid."""

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_is_label = re.compile(_LABEL).fullmatch
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    f"for validation is '{_LABEL}')"
)
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_CONFIG_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',"
    f"  or 'KEY_NAME',  or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
)
_PERCENT = "[0-9]+%"
_PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
    f"'93%', regex used for validation is '{_PERCENT}')"
)
IP_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
CIDR_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
NO_DOTS = "must not contain dots"
MAX_LABEL, MAX_CONFIG_KEY, MAX_PORT_NAME = 63, 253, 15
ANNOTATIONS_LIMIT = 256 * 1024
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
# The form of the names of most kinds is a subdomain; these have labels.
_LABEL_NAMES = frozenset({"Namespace", "Service"})
_PATH_NAMES = frozenset({"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})
MAX_CRON_JOB_NAME = 52


def label_problems(name: str) -> tuple[str, ...]:
    """The errors of a DNS label, the form of names of namespaces and containers."""
    long = (f"must be no more than {MAX_LABEL} characters",) if len(name) > MAX_LABEL else ()
    if _is_label(name):
        return long
    if re.fullmatch(rf"{_LABEL}(\.{_LABEL})+", name):
        return (*long, NO_DOTS)
    return (*long, _LABEL_RULE)


def config_key_problems(key: str) -> tuple[str, ...]:
    """The errors of a key of a ConfigMap or Secret."""
    if len(key) > MAX_CONFIG_KEY:
        return (f"must be no more than {MAX_CONFIG_KEY} characters",)
    if not re.fullmatch(_CONFIG_KEY, key):
        return (_CONFIG_KEY_RULE,)
    if key in (".", ".."):
        return (f"must not be '{key}'",)
    return ("must not start with '..'",) if key.startswith("..") else ()


def port_name_problems(name: str) -> tuple[str, ...]:
    """The errors of the name of a port."""
    found = []
    if len(name) > MAX_PORT_NAME:
        found.append(f"must be no more than {MAX_PORT_NAME} characters")
    if not re.fullmatch("[-a-z0-9]+", name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return tuple(found)


def each_problem(rule: Rule, value: str, path: str) -> FieldErrors:
    """An error per problem that a rule finds."""
    for problem in rule(value):
        yield fe.invalid(path, value, problem)


def named(rule: Rule, holder: Fields, path: str, field: str = "name") -> FieldErrors:
    """A required name of a form."""
    value = fe.text(holder, field)
    if not value:
        yield fe.required(fe.join_path(path, field))
    elif problems := rule(value):
        path = fe.join_path(path, field)
        yield from (fe.invalid(path, value, problem) for problem in problems)


def port_number(value: object, path: str) -> FieldErrors:
    """A port must be 1 to 65535."""
    if isinstance(value, int) and not 1 <= value <= 65535:
        yield fe.invalid(path, value, "must be between 1 and 65535, inclusive")


def port_or_name(holder: Fields, path: str, field: str) -> FieldErrors:
    """A port by its number or by its name."""
    value = holder.get(field)
    path = fe.join_path(path, field)
    if isinstance(value, str):
        yield from each_problem(port_name_problems, value, path)
    else:
        yield from port_number(value or 0, path)


def ip_address(value: str, path: str) -> FieldErrors:
    """An IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        yield fe.invalid(path, value, IP_RULE)


def network(value: str, path: str) -> FieldErrors:
    """A network in CIDR notation."""
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        yield fe.invalid(path, value, CIDR_RULE)


def int_or_percent(value: object, path: str) -> FieldErrors:
    """An integer that is not negative, or a percentage."""
    if isinstance(value, str):
        if not re.fullmatch(_PERCENT, value):
            yield fe.invalid(path, value, _PERCENT_RULE)
    elif isinstance(value, int) and value < 0:
        yield fe.invalid(path, value, fe.NOT_NEGATIVE)


def at_most_100_percent(value: object, path: str) -> FieldErrors:
    """A percentage of a whole."""
    if isinstance(value, str) and re.fullmatch(_PERCENT, value) and int(value[:-1]) > 100:
        yield fe.invalid(path, value, "must not be greater than 100%")


# Labels and selectors


def label_map(values: Fields, path: str) -> FieldErrors:
    """Labels, or the labels of a selector."""
    for key, value in values.items():
        for problem in labels.key_problems(key):
            yield fe.invalid(path, key, problem)
        for problem in labels.value_problems(value) if isinstance(value, str) else ():
            yield fe.invalid(path, value, problem)


def label_selector(selector: Fields | None, path: str) -> FieldErrors:
    """The labels and expressions of a label selector."""
    if selector is None:
        return
    yield from label_map(fe.mapping(selector, "matchLabels"), f"{path}.matchLabels")
    for i, each in enumerate(fe.items(selector, "matchExpressions")):
        yield from requirement(each, f"{path}.matchExpressions[{i}]")


def requirement(
    requirement: Fields,
    path: str,
    *,
    operators_of_numbers: tuple[str, ...] = (),
    any_values: bool = False,
) -> FieldErrors:
    """Key, operator and values of one requirement on labels."""
    operator, values = fe.text(requirement, "operator"), fe.texts(requirement, "values")
    if operator in ("In", "NotIn"):
        if not values:
            rule = "must be specified when `operator` is 'In' or 'NotIn'"
            yield fe.required(f"{path}.values", rule)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield fe.forbidden(f"{path}.values", rule)
    elif operator in operators_of_numbers:
        if len(values) != 1:
            rule = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield fe.required(f"{path}.values", rule)
    else:
        yield fe.invalid(f"{path}.operator", operator, BAD_OPERATOR)
    yield from each_problem(labels.key_problems, fe.text(requirement, "key"), f"{path}.key")
    for i, value in enumerate(() if any_values else values):
        yield from each_problem(labels.value_problems, value, f"{path}.values[{i}]")


# Metadata


def name_rule(kind: str) -> Rule:
    """The form of the names of a kind."""
    if kind in _LABEL_NAMES:
        return label_problems
    return path_segment_problems if kind in _PATH_NAMES else labels.subdomain_problems


def path_segment_problems(name: str) -> tuple[str, ...]:
    """The errors of a name that only has to fit into a URL."""
    found = tuple(f"may not contain '{each}'" for each in ("/", "%") if each in name)
    return (f"may not be '{name}'",) if name in (".", "..") else found


def metadata(
    kind: str, meta: Fields, path: str = "metadata", *, is_built_in: bool = True
) -> FieldErrors:
    """The name, labels, annotations, finalizers and owners of an object."""
    name = fe.text(meta, "name")
    if not name:
        yield fe.required(f"{path}.name", "name or generateName is required")
    else:
        yield from each_problem(name_rule(kind), name, f"{path}.name")
        if kind == "CronJob" and len(name) > MAX_CRON_JOB_NAME:
            rule = f"must be no more than {MAX_CRON_JOB_NAME} characters"
            yield fe.invalid(f"{path}.name", name, rule)
    yield from template_metadata(meta, path)
    if is_built_in:  # A custom resource may have any name.
        yield from _finalizers(fe.texts(meta, "finalizers"), path)
    yield from _owners(fe.items(meta, "ownerReferences"), f"{path}.ownerReferences")


def template_metadata(meta: Fields, path: str) -> FieldErrors:
    """The metadata of a template: labels and annotations."""
    if annotations := fe.mapping(meta, "annotations"):
        for key in annotations:
            for problem in labels.key_problems(key.lower()):
                yield fe.invalid(f"{path}.annotations", key, problem)
        if _size(annotations) > ANNOTATIONS_LIMIT:
            rule = f"may not be more than {ANNOTATIONS_LIMIT} bytes"
            yield fe.too_long(f"{path}.annotations", rule)
    if given := fe.mapping(meta, "labels"):
        yield from label_map(given, f"{path}.labels")


def _size(annotations: Fields) -> int:
    return sum(len(key.encode()) + len(str(each).encode()) for key, each in annotations.items())


def _finalizers(finalizers: Iterable[str], path: str) -> FieldErrors:
    for i, each in enumerate(finalizers):
        yield from each_problem(labels.key_problems, each, f"{path}.finalizers")
        if "/" not in each and each not in _STANDARD_FINALIZERS:
            rule = "name is neither a standard finalizer name nor is it fully qualified"
            yield fe.invalid(f"{path}.finalizers[{i}]", each, rule)


def _owners(owners: list[Fields], path: str) -> FieldErrors:
    controllers = []
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not fe.text(owner, field):
                rule = "version must not be empty" if field == "apiVersion" else "must not be empty"
                yield fe.invalid(f"{path}.{field}", "", rule)
        version, kind = fe.text(owner, "apiVersion"), fe.text(owner, "kind")
        if (version, kind) == ("v1", "Event"):
            yield fe.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")
        if fe.flag(owner, "controller"):
            controllers.append(f"{kind}/{fe.text(owner, 'name')}")
    if len(controllers) > 1:
        rule = 'Only one reference can have Controller set to true. Found "true" in references for '
        yield fe.invalid(path, owners, f"{rule}{controllers[0]} and {controllers[1]}")
