"""Containers: ports, environment, mounts, probes, lifecycle."""

import re

from moorage.api.validation import amounts, names
from moorage.api.validation import field_errors as fe
from moorage.api.validation.field_errors import FieldErrors, Fields
from moorage.api.validation.names import each_problem

PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_CONTAINER_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBED = frozenset({"lifecycle", *_PROBES})
_PROBE_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_ENV_RULE = (
    "a valid environment variable name must consist only of printable ASCII characters other than "
    "'='"
)
_ENV_FIELDS = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
_FIELD_BY_KEY = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_NO_INIT_PROBES = "may not be set for init containers without restartPolicy=Always"


class PodContext:
    """What the rules of containers read of their pod."""

    def __init__(self, spec: Fields, volumes: dict[str, Fields]) -> None:
        self.volumes = volumes
        self.claims = {fe.text(each, "name") for each in fe.items(spec, "resourceClaims")}
        grace = fe.number(spec, "terminationGracePeriodSeconds")
        self.grace_seconds = 30 if grace is None else grace


def containers(spec: Fields, path: str, context: PodContext) -> FieldErrors:
    """All containers and init containers of a pod."""
    regular, init = fe.items(spec, "containers"), fe.items(spec, "initContainers")
    here = f"{path}.containers"
    if not regular:
        yield fe.required(here)
    seen: set[str] = set()
    for i, container in enumerate(regular):
        item, name = f"{here}[{i}]", fe.text(container, "name")
        yield from _container(container, item, context)
        if name in seen:
            yield fe.duplicate(f"{item}.name", name)
        seen.add(name)
        yield from _probes(container, item, context)
        yield from fe.one_of(container, item, "restartPolicy", _CONTAINER_RESTART_POLICIES)
    yield from _host_port_conflicts(regular, here)
    for i, container in enumerate(init):
        item, name = f"{path}.initContainers[{i}]", fe.text(container, "name")
        yield from _container(container, item, context)
        yield from fe.one_of(container, item, "restartPolicy", _CONTAINER_RESTART_POLICIES)
        if name in seen:
            yield fe.duplicate(f"{item}.name", name)
        if name:
            seen.add(name)
        yield from _host_port_conflicts([container], f"{path}.initContainers")
        if fe.text(container, "restartPolicy") == "Always":
            yield from _probes(container, item, context)
        else:
            for field in ("lifecycle", *_PROBES):
                if fe.is_set(container, field):
                    yield fe.forbidden(f"{item}.{field}", _NO_INIT_PROBES)


def _container(container: Fields, path: str, context: PodContext) -> FieldErrors:
    yield from names.named(names.label_problems, container, path)
    image = fe.text(container, "image")
    if not image:
        yield fe.required(f"{path}.image")
    elif image != image.strip():
        yield fe.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    # Most containers have few of these fields.
    if "terminationMessagePolicy" in container:
        yield from fe.one_of(container, path, "terminationMessagePolicy", _MESSAGE_POLICIES)
    if "ports" in container:
        yield from _ports(fe.items(container, "ports"), f"{path}.ports")
    if "env" in container or "envFrom" in container:
        yield from _environment(container, path)
    if "volumeMounts" in container or "volumeDevices" in container:
        yield from _mounts(container, path, context.volumes)
    if "imagePullPolicy" in container:
        yield from fe.one_of(container, path, "imagePullPolicy", _PULL_POLICIES)
    if resources := fe.mapping(container, "resources"):
        yield from amounts.container_resources(resources, context.claims, f"{path}.resources")
    if "securityContext" in container:
        yield from _security(container, path)


def _security(container: Fields, path: str) -> FieldErrors:
    security = fe.mapping(container, "securityContext")
    path = f"{path}.securityContext"
    yield from user_ids(security, path)
    if fe.flag(security, "privileged") and security.get("allowPrivilegeEscalation") is False:
        rule = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield fe.invalid(path, security, rule)


def user_ids(security: Fields, path: str) -> FieldErrors:
    """The user and group of a security context."""
    for field in ("runAsUser", "runAsGroup", "fsGroup"):
        value = fe.number(security, field)
        if value is not None and not 0 <= value < 2**31:
            rule = f"must be between 0 and {2**31 - 1}, inclusive"
            yield fe.invalid(f"{path}.{field}", value, rule)


# Ports


def _ports(ports: list[Fields], path: str) -> FieldErrors:
    seen = set()
    for i, port in enumerate(ports):
        item, name = f"{path}[{i}]", fe.text(port, "name")
        if name:
            problems = names.port_name_problems(name)
            for problem in problems:
                yield fe.invalid(f"{item}.name", name, problem)
            if not problems and name in seen:
                yield fe.duplicate(f"{item}.name", name)
            seen.add(name)
        if not fe.number(port, "containerPort"):
            yield fe.required(f"{item}.containerPort")
        yield from names.port_number(port.get("containerPort") or 1, f"{item}.containerPort")
        yield from names.port_number(port.get("hostPort") or 1, f"{item}.hostPort")
        yield from fe.one_of(port, item, "protocol", PROTOCOLS)


def _host_port_conflicts(listed: list[Fields], path: str) -> FieldErrors:
    seen = set()
    for i, container in enumerate(listed):
        for j, port in enumerate(fe.items(container, "ports")):
            number = fe.number(port, "hostPort")
            if number:
                protocol = fe.text(port, "protocol") or "TCP"
                key = f"{protocol}/{fe.text(port, 'hostIP')}/{number}"
                if key in seen:
                    yield fe.duplicate(f"{path}[{i}].ports[{j}].hostPort", key)
                seen.add(key)


def host_network_ports(spec: Fields, path: str) -> FieldErrors:
    """On the network of the node, a port and its host port are one."""
    for field in ("containers", "initContainers"):
        for i, container in enumerate(fe.items(spec, field)):
            for j, port in enumerate(fe.items(container, "ports")):
                host = fe.number(port, "hostPort")
                if host and host != fe.number(port, "containerPort"):
                    rule = "must match `containerPort` when `hostNetwork` is true"
                    yield fe.invalid(f"{path}.{field}[{i}].ports[{j}].hostPort", host, rule)


# Environment


def _environment(container: Fields, path: str) -> FieldErrors:
    for i, each in enumerate(fe.items(container, "env")):
        item = f"{path}.env[{i}]"
        yield from names.named(_env_name_problems, each, item)
        yield from _env_source(each, f"{item}.valueFrom")
    here = f"{path}.envFrom"
    for i, each in enumerate(fe.items(container, "envFrom")):
        if prefix := fe.text(each, "prefix"):
            yield from each_problem(_env_name_problems, prefix, f"{here}[{i}].prefix")
        sources = [field for field in ("configMapRef", "secretRef") if fe.is_set(each, field)]
        for field in sources:
            yield from fe.needed(fe.mapping(each, field), f"{here}[{i}].{field}", "name")
        if not sources:
            yield fe.invalid(here, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(sources) > 1:
            yield fe.invalid(here, "", "may not have more than one field specified at a time")


def _env_name_problems(name: str) -> tuple[str, ...]:
    return () if re.fullmatch("[ -<>-~]+", name) else (_ENV_RULE,)


def _env_source(variable: Fields, path: str) -> FieldErrors:
    source = fe.optional(variable, "valueFrom")
    if source is None:
        return
    if (field := fe.optional(source, "fieldRef")) is not None:
        yield from field_reference(field, f"{path}.fieldRef")
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if (reference := fe.optional(source, kind)) is not None:
            yield from fe.needed(reference, f"{path}.{kind}", "name")
            yield from names.named(names.config_key_problems, reference, f"{path}.{kind}", "key")
    if (resource := fe.optional(source, "resourceFieldRef")) is not None:
        yield from fe.needed(resource, f"{path}.resourceFieldRef", "resource")
    count = sum(value is not None for value in source.values())
    if not count:
        rule = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
        yield fe.invalid(path, "", rule + "`secretKeyRef` or `fileKeyRef`")
    elif fe.text(variable, "value"):
        yield fe.invalid(path, "", "may not be specified when `value` is not empty")
    elif count > 1:
        yield fe.invalid(path, "", "may not have more than one field specified at a time")


def field_reference(reference: Fields, path: str) -> FieldErrors:
    """A field of the pod as the value of a variable or of a file."""
    found = fe.text(reference, "fieldPath")
    if not found:
        yield fe.required(f"{path}.fieldPath")
    elif found not in _ENV_FIELDS and not _FIELD_BY_KEY.fullmatch(found):
        rule = f"error converting fieldPath: field label not supported: {found}"
        yield fe.invalid(f"{path}.fieldPath", found, rule)


# Mounts


def _mounts(container: Fields, path: str, volumes: dict[str, Fields]) -> FieldErrors:
    here = f"{path}.volumeMounts"
    devices = {
        fe.text(each, "name"): fe.text(each, "devicePath")
        for each in fe.items(container, "volumeDevices")
    }
    seen = set()
    for i, mount in enumerate(fe.items(container, "volumeMounts")):
        item = f"{here}[{i}]"
        name, at = fe.text(mount, "name"), fe.text(mount, "mountPath")
        yield from fe.needed(mount, item, "name")
        if name not in volumes:
            yield fe.not_found(f"{item}.name", name)
        yield from fe.needed(mount, item, "mountPath")
        if at in seen:
            yield fe.invalid(f"{item}.mountPath", at, "must be unique")
        seen.add(at)
        if name in devices:
            yield fe.invalid(f"{item}.name", name, "must not already exist in volumeDevices")
        for field in ("subPath", "subPathExpr"):
            yield from relative_path(fe.text(mount, field), f"{here}.{field}")
        yield from fe.one_of(mount, here, "mountPropagation", _PROPAGATIONS)
    for i, device in enumerate(fe.items(container, "volumeDevices")):
        item, name = f"{path}.volumeDevices[{i}]", fe.text(device, "name")
        yield from fe.needed(device, item, "name", "devicePath")
        source = volumes.get(name)
        if source is None:
            yield fe.not_found(f"{item}.name", name)
        elif not source.keys() & {"persistentVolumeClaim", "ephemeral"}:
            rule = "can only use volume source type of PersistentVolumeClaim or Ephemeral for "
            yield fe.invalid(f"{item}.name", name, f"{rule}block mode")


def relative_path(value: str, path: str) -> FieldErrors:
    """A path inside of a volume."""
    if value.startswith("/"):
        yield fe.invalid(path, value, "must be a relative path")
    if ".." in value.split("/"):
        yield fe.invalid(path, value, "must not contain '..'")


# Probes and lifecycle


def _probes(container: Fields, path: str, context: PodContext) -> FieldErrors:
    if not container.keys() & _PROBED:
        return
    for hook in ("postStart", "preStop"):
        handler = fe.optional(fe.mapping(container, "lifecycle"), hook)
        if handler is not None:
            yield from _handler(handler, f"{path}.lifecycle.{hook}", context)
    for field in _PROBES:
        probe = fe.optional(container, field)
        if probe is None:
            continue
        here = f"{path}.{field}"
        yield from _handler(probe, here, context)
        yield from fe.not_negative(probe, here, *_PROBE_NUMBERS)
        threshold = fe.number(probe, "successThreshold")
        if field != "readinessProbe" and threshold not in (None, 1):
            yield fe.invalid(f"{here}.successThreshold", threshold, "must be 1")
        grace = fe.number(probe, "terminationGracePeriodSeconds")
        if grace is not None and grace <= 0:
            rule = "must be greater than 0"
            yield fe.invalid(f"{here}.terminationGracePeriodSeconds", grace, rule)


def _handler(holder: Fields, path: str, context: PodContext) -> FieldErrors:
    given = [name for name in _HANDLERS if fe.is_set(holder, name)]
    if not given:
        yield fe.required(path, "must specify a handler type")
        return
    for name in given[1:]:
        yield fe.forbidden(f"{path}.{name}", "may not specify more than 1 handler type")
    name = given[0]
    action, here = fe.mapping(holder, name), f"{path}.{name}"
    match name:
        case "exec":
            if not fe.texts(action, "command"):
                yield fe.required(f"{here}.command")
        case "httpGet":
            yield from fe.one_of(action, here, "scheme", ("HTTP", "HTTPS"))
            yield from names.port_or_name(action, here, "port")
        case "tcpSocket":
            yield from names.port_or_name(action, here, "port")
        case "grpc":
            yield from names.port_number(action.get("port") or 0, f"{here}.port")
        case "sleep":
            seconds = fe.number(action, "seconds") or 0
            if not 0 <= seconds <= context.grace_seconds:
                rule = "must be non-negative and less than terminationGracePeriodSeconds"
                yield fe.invalid(here, seconds, f"{rule} ({context.grace_seconds})")
