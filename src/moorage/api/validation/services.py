"""Services, ConfigMaps, Secrets, Leases and nodes."""

import base64
import binascii
import json

from moorage.api.validation import amounts, names, placement
from moorage.api.validation import field_errors as fe
from moorage.api.validation.containers import PROTOCOLS
from moorage.api.validation.field_errors import FieldErrors, Fields

SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_HEADLESS = "None"
_TRAFFIC_POLICIES = ("Cluster", "Local")
MAX_DATA_BYTES = 2**20
_SECRET_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_ACCOUNT = "kubernetes.io/service-account.name"


def validate_service(service: Fields) -> FieldErrors:
    """A Service."""
    spec = fe.mapping(service, "spec")
    kind = fe.text(spec, "type") or "ClusterIP"
    ports, address = fe.items(spec, "ports"), fe.text(spec, "clusterIP")
    headless = address == _HEADLESS
    if not ports and not headless and kind != "ExternalName":
        yield fe.required("spec.ports")
    if kind == "ExternalName":
        yield from fe.needed(spec, "spec", "externalName")
    yield from _ports(ports, kind)
    yield from names.label_map(fe.mapping(spec, "selector"), "spec.selector")
    yield from fe.one_of(spec, "spec", "sessionAffinity", ("ClientIP", _HEADLESS))
    if headless and kind in ("NodePort", "LoadBalancer"):
        rule = f"may not be set to 'None' for {kind} services"
        yield fe.invalid("spec.clusterIPs[0]", address, rule)
    elif address and not headless and kind != "ExternalName":
        yield from names.ip_address(address, "spec.clusterIPs[0]")
    for i, each in enumerate(fe.texts(spec, "externalIPs")):
        yield from names.ip_address(each, f"spec.externalIPs[{i}]")
    if kind not in SERVICE_TYPES:
        yield fe.not_supported("spec.type", kind, SERVICE_TYPES)
    for field in ("externalTrafficPolicy", "internalTrafficPolicy"):
        yield from fe.one_of(spec, "spec", field, _TRAFFIC_POLICIES)


def _ports(ports: list[Fields], kind: str) -> FieldErrors:
    seen_names: set[str] = set()
    seen_ports: set[tuple[str, int]] = set()
    for i, port in enumerate(ports):
        path, name = f"spec.ports[{i}]", fe.text(port, "name")
        if name:
            yield from names.each_problem(names.label_problems, name, f"{path}.name")
            if name in seen_names:
                yield fe.duplicate(f"{path}.name", name)
            seen_names.add(name)
        elif len(ports) > 1:
            yield fe.required(f"{path}.name")
        number = fe.number(port, "port") or 0
        yield from names.port_number(number, f"{path}.port")
        yield from fe.one_of(port, path, "protocol", PROTOCOLS)
        if fe.is_set(port, "targetPort") or port.get("port") == 0:
            # 0 and "" are not stated: the target is the port itself.
            stated = {"targetPort": port.get("targetPort") or port.get("port", 0)}
            yield from names.port_or_name(stated, path, "targetPort")
        if kind == "ClusterIP" and fe.number(port, "nodePort"):
            rule = "may not be used when `type` is 'ClusterIP'"
            yield fe.forbidden(f"{path}.nodePort", rule)
        protocol = fe.text(port, "protocol") or "TCP"
        if (protocol, number) in seen_ports:
            shown = {
                "Name": "",
                "Protocol": protocol,
                "AppProtocol": None,
                "Port": number,
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield fe.duplicate(path, shown)
        seen_ports.add((protocol, number))


# Data


def validate_config_map(config_map: Fields) -> FieldErrors:
    """A ConfigMap."""
    data, binary = fe.mapping(config_map, "data"), fe.mapping(config_map, "binaryData")
    for key in data:
        for problem in names.config_key_problems(key):
            yield fe.invalid(f"data[{key}]", key, problem)
        if key in binary:
            yield fe.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        for problem in names.config_key_problems(key):
            yield fe.invalid(f"binaryData[{key}]", key, problem)
    size = sum(len(str(each).encode()) for each in data.values())
    size += sum(len(each) * 3 // 4 for each in binary.values() if isinstance(each, str))
    if size > MAX_DATA_BYTES:
        yield fe.too_long("", f"may not be more than {MAX_DATA_BYTES} bytes")


def validate_secret(secret: Fields) -> FieldErrors:
    """A Secret."""
    data, kind = fe.mapping(secret, "data"), fe.text(secret, "type")
    for key in data:
        for problem in names.config_key_problems(key):
            yield fe.invalid(f"data[{key}]", key, problem)
    size = sum(len(each) * 3 // 4 for each in data.values() if isinstance(each, str))
    if size > MAX_DATA_BYTES:
        yield fe.too_long("data", f"may not be more than {MAX_DATA_BYTES} bytes")
    for key in _SECRET_KEYS.get(kind, ()):
        if key not in data:
            yield fe.required(f"data[{key}]")
        elif "docker" in kind:
            yield from _docker_config(data[key], f"data[{key}]")
    if kind == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield fe.required("data[username]")
        yield fe.required("data[password]")
    annotations = fe.mapping(fe.mapping(secret, "metadata"), "annotations")
    if kind == "kubernetes.io/service-account-token" and not fe.text(annotations, _ACCOUNT):
        yield fe.required(f"metadata.annotations[{_ACCOUNT}]")


def _docker_config(value: object, path: str) -> FieldErrors:
    try:
        text = base64.b64decode(str(value)).decode()
        json.loads(text)
    except RecursionError:
        yield fe.invalid(path, "<secret contents redacted>", "exceeded max depth")
    except (binascii.Error, ValueError) as error:
        at = getattr(error, "pos", None)
        if at is None:
            problem = str(error)
        elif at >= len(text):
            problem = "unexpected end of JSON input"
        else:
            problem = f"invalid character '{text[at]}' looking for beginning of value"
        yield fe.invalid(path, "<secret contents redacted>", problem)


# Leases and nodes


def validate_lease(lease: Fields) -> FieldErrors:
    """A Lease."""
    spec = fe.mapping(lease, "spec")
    seconds = fe.number(spec, "leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield fe.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    yield from fe.not_negative(spec, "spec", "leaseTransitions")


def validate_node(node: Fields) -> FieldErrors:
    """A Node."""
    spec, status = fe.mapping(node, "spec"), fe.mapping(node, "status")
    # An API server names the taints by this path.
    yield from placement.taints(fe.items(spec, "taints"), "metadata.taints")
    for field in ("capacity", "allocatable"):
        for name, value in fe.mapping(status, field).items():
            yield from amounts.amount(name, value, "", f"status.{field}.{name}")
    for i, network in enumerate(fe.texts(spec, "podCIDRs")):
        yield from names.network(network, f"spec.podCIDRs[{i}]")
