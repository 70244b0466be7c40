"""Pods and templates of pods."""

from moorage.api import labels
from moorage.api.validation import amounts, containers, names, placement, volumes
from moorage.api.validation import field_errors as fe
from moorage.api.validation.containers import PodContext
from moorage.api.validation.field_errors import FieldErrors, Fields
from moorage.api.validation.names import each_problem

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MAX_DEADLINE = 2**31 - 1
_HOST_FIELDS = ("hostPID", "hostIPC", "hostNetwork")
_MAX_NAMESERVERS = 3


def validate_pod(pod: Fields) -> FieldErrors:
    """A pod."""
    spec = fe.mapping(pod, "spec")
    yield from pod_spec(spec, "spec", fe.mapping(fe.mapping(pod, "metadata"), "labels"))
    if fe.items(spec, "ephemeralContainers"):
        yield fe.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if fe.items(spec, "schedulingGates") and fe.text(spec, "nodeName"):
        rule = "cannot be set until all schedulingGates have been cleared"
        yield fe.forbidden("spec.nodeName", rule)


def template(template: Fields, path: str) -> FieldErrors:
    """The template of the pods of a workload."""
    meta = fe.mapping(template, "metadata")
    # An API server names the labels of a template by this path.
    yield from names.template_metadata(meta, path)
    spec = fe.mapping(template, "spec")
    yield from pod_spec(spec, f"{path}.spec", {})
    if fe.items(spec, "ephemeralContainers"):
        rule = "ephemeral containers not allowed in pod template"
        yield fe.forbidden(f"{path}.spec.ephemeralContainers", rule)


def pod_spec(spec: Fields, path: str, pod_labels: Fields) -> FieldErrors:
    """The spec of a pod, or of a template."""
    found: dict[str, Fields] = {}
    if "volumes" in spec:
        found, errors = volumes.pod_volumes(fe.items(spec, "volumes"), f"{path}.volumes")
        yield from errors
    if "resourceClaims" in spec:
        yield from _resource_claims(fe.items(spec, "resourceClaims"), f"{path}.resourceClaims")
    yield from containers.containers(spec, path, PodContext(spec, found))
    yield from amounts.pod_resources(spec, path)
    if fe.flag(spec, "hostNetwork"):
        yield from containers.host_network_ports(spec, path)
    # Most pods have few of these fields.
    if "restartPolicy" in spec:
        yield from fe.one_of(spec, path, "restartPolicy", RESTART_POLICIES)
    if "dnsPolicy" in spec:
        yield from fe.one_of(spec, path, "dnsPolicy", _DNS_POLICIES)
    if selector := fe.mapping(spec, "nodeSelector"):
        yield from names.label_map(selector, f"{path}.nodeSelector")
    if security := fe.mapping(spec, "securityContext"):
        yield from containers.user_ids(security, f"{path}.securityContext")
    if "dnsConfig" in spec or "dnsPolicy" in spec:
        yield from _dns(spec, path)
    for i, gate in enumerate(fe.items(spec, "readinessGates")):
        field = f"{path}.readinessGates[{i}].conditionType"
        yield from each_problem(labels.key_problems, fe.text(gate, "conditionType"), field)
    yield from _names(spec, path)
    deadline = fe.number(spec, "activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MAX_DEADLINE:
        rule = f"must be between 1 and {_MAX_DEADLINE}, inclusive"
        yield fe.invalid(f"{path}.activeDeadlineSeconds", deadline, rule)
    yield from placement.pod_placement(spec, path, pod_labels)
    for i, alias in enumerate(fe.items(spec, "hostAliases")):
        yield from names.ip_address(fe.text(alias, "ip"), f"{path}.hostAliases[{i}].ip")
    if overhead := fe.mapping(spec, "overhead"):
        check = amounts.container_resource_name
        yield from amounts.quantities(overhead, f"{path}.overhead.limits", check)
    if "os" in spec:
        yield from _operating_system(spec, path)


def _names(spec: Fields, path: str) -> FieldErrors:
    for field in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        if field in spec and (value := fe.text(spec, field)):
            yield from each_problem(labels.subdomain_problems, value, f"{path}.{field}")
    for field in ("hostname", "subdomain"):
        if field in spec and (value := fe.text(spec, field)):
            yield from each_problem(names.label_problems, value, f"{path}.{field}")


def _dns(spec: Fields, path: str) -> FieldErrors:
    config, path = fe.optional(spec, "dnsConfig"), f"{path}.dnsConfig"
    servers = fe.texts(config or {}, "nameservers")
    if fe.text(spec, "dnsPolicy") == "None":
        if config is None:
            yield fe.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        elif not servers:
            rule = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield fe.required(f"{path}.nameservers", rule)
    if len(servers) > _MAX_NAMESERVERS:
        rule = f"must not have more than {_MAX_NAMESERVERS} nameservers"
        yield fe.invalid(f"{path}.nameservers", servers, rule)
    for i, server in enumerate(servers):
        yield from names.ip_address(server, f"{path}.nameservers[{i}]")


def _operating_system(spec: Fields, path: str) -> FieldErrors:
    system = fe.optional(spec, "os")
    if system is None:
        return
    name = fe.text(system, "name")
    if not name:
        yield fe.required(f"{path}.os.name", "cannot be empty")
    elif name not in ("linux", "windows"):
        yield fe.not_supported(f"{path}.os", name, ("linux", "windows"))
    elif name == "windows":
        for field in _HOST_FIELDS:
            if fe.flag(spec, field):
                yield fe.forbidden(f"{path}.{field}", "cannot be set for a windows pod")


def _resource_claims(claims: list[Fields], path: str) -> FieldErrors:
    seen: set[str] = set()
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    for i, claim in enumerate(claims):
        item, name = f"{path}[{i}]", fe.text(claim, "name")
        if name in seen and name:
            yield fe.duplicate(f"{item}.name", name)
        else:
            yield from names.named(names.label_problems, claim, item)
        seen.add(name)
        given = [field for field in sources if fe.is_set(claim, field)]
        shown = {
            "Name": name,
            "ResourceClaimName": claim.get(sources[0]),
            "ResourceClaimTemplateName": claim.get(sources[1]),
        }
        if len(given) > 1:
            rule = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be "
            yield fe.invalid(item, shown, f"{rule}specified")
        elif not given:
            rule = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield fe.invalid(item, shown, rule)
        for field in given:
            value = fe.text(claim, field)
            yield from each_problem(labels.subdomain_problems, value, f"{item}.{field}")
