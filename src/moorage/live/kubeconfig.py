"""Read a connection from a kubeconfig, or from the service account of the pod we run in.

A loader of our own: those of the Kubernetes clients import their models, which takes longer than
importing all of Moorage. Every error is one line that names the file, the entry and the field.
"""

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from moorage.api.config import sources
from moorage.api.manifests import errors
from moorage.errors import ConfigError, KubeconfigError
from moorage.live.connection import Connection, ExecPlugin, Identity, ServerTrust

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class _Cluster(Struct, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class _Variable(Struct, frozen=True):
    name: str
    value: str = ""


class _Exec(Struct, frozen=True, rename="camel"):
    command: str = ""
    api_version: str = ""
    args: list[str] | None = None
    env: list[_Variable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False


class _User(Struct, frozen=True, rename="kebab"):
    token: str = ""
    token_file: str = field(name="tokenFile", default="")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    exec: _Exec | None = None
    auth_provider: dict[str, Any] | None = None


class _Context(Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


T = TypeVar("T")


def find(
    path: str | None = None,
    *,
    context: str | None = None,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """The connection from the file `path`, else from the pod we run in, else from $KUBECONFIG
    or ~/.kube/config."""
    if path:
        return load([Path(path).expanduser()], context=context)
    host, token = environment.get("KUBERNETES_SERVICE_HOST"), service_account / "token"
    if host and token.exists():
        port = environment.get("KUBERNETES_SERVICE_PORT", "443")
        authority_file = service_account / "ca.crt"
        authority = _read(authority_file, "the cluster's certificate authority")
        return Connection(
            server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
            trust=ServerTrust(authority=authority, authority_file=authority_file),
            identity=Identity(token_file=token),
            source=str(service_account),
        )
    existing = [each for each in _default_paths(environment) if each.exists()]
    if not existing:
        raise KubeconfigError(
            "no kubeconfig found: pass --kubeconfig FILE or set $KUBECONFIG, or run in a pod with "
            "a service account"
        )
    return load(existing, context=context)


def is_set(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether `find` has something to read without a path."""
    return bool(
        environment.get("KUBECONFIG")
        or environment.get("KUBERNETES_SERVICE_HOST")
        or any(each.exists() for each in _default_paths(environment))
    )


def _default_paths(environment: Mapping[str, str]) -> list[Path]:
    named = [Path(each) for each in environment.get("KUBECONFIG", "").split(os.pathsep) if each]
    return named or [Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"]


def load(paths: list[Path], *, context: str | None = None) -> Connection:
    """The connection of a context in these files; the first file with an entry counts."""
    files = [_File(path) for path in paths]
    chosen = context or next((file.current for file in files if file.current), "")
    names = ", ".join(str(path) for path in paths)
    if not chosen:
        known = ", ".join(each for file in files for each in file.names("contexts"))
        there_are = f", as {known}" if known else "; there is none"
        text = f"current-context is not set; name a context with --context{there_are}"
        raise KubeconfigError(f"{names}: {text}")
    _, entry = _entry(files, "contexts", "context", chosen, _Context, names)
    at = f"{names}, context {chosen!r}"
    if not entry.cluster:
        raise KubeconfigError(f"{at}: cluster is missing")
    file, cluster = _entry(files, "clusters", "cluster", entry.cluster, _Cluster, at)
    server, trust = _server(file, entry.cluster, cluster)
    identity = Identity()
    if entry.user:
        file, user = _entry(files, "users", "user", entry.user, _User, at)
        identity = _identity(file, entry.user, user)
    return Connection(
        server=server,
        trust=trust,
        identity=identity,
        namespace=entry.namespace or "default",
        proxy=cluster.proxy_url,
        source=names,
    )


class _File:
    """One kubeconfig as plain data."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            plain = sources.read(path)
        except ConfigError as error:
            raise KubeconfigError(f"{path}: {error}") from None
        if not isinstance(plain, dict):
            raise KubeconfigError(f"{path}: is not a kubeconfig: expected a mapping")
        if plain.get("kind", "Config") != "Config":
            kind = errors.shown(plain["kind"])
            raise KubeconfigError(f"{path}: is not a kubeconfig: its kind is {kind}")
        self.plain: dict[str, Any] = plain
        self.current = str(plain.get("current-context") or "")

    def entry(self, section: str, inner: str, name: str) -> Any:
        """The entry `inner` with a name in a section; None if this file does not have it."""
        for each in self._entries(section):
            if each.get("name") == name:
                return each.get(inner) or {}
        return None

    def names(self, section: str) -> list[str]:
        """The names of all entries of a section."""
        return [str(each.get("name")) for each in self._entries(section)]

    def _entries(self, section: str) -> list[dict[str, Any]]:
        entries = self.plain.get(section) or []
        if not isinstance(entries, list):
            raise KubeconfigError(f"{self.path}, {section}: must be a list")
        return [each for each in entries if isinstance(each, dict)]

    def resolve(self, name: str) -> Path:
        """The path of a file named in this one; relative to this one."""
        return self.path.parent / Path(name).expanduser()


def _entry(
    files: list[_File], section: str, inner: str, name: str, struct: type[T], at: str
) -> tuple[_File, T]:
    for file in files:
        plain = file.entry(section, inner, name)
        if plain is None:
            continue
        try:
            return file, msgspec.convert(plain, struct)
        except msgspec.ValidationError as error:
            path, problem = errors.translate(str(error), plain)
            at = f"{file.path}, {inner} {name!r}"
            raise KubeconfigError(f"{at}{f', {path}' if path else ''}: {problem}") from None
    raise KubeconfigError(f"{at}: there is no {inner} {name!r}")


def _server(file: _File, name: str, cluster: _Cluster) -> tuple[str, ServerTrust]:
    at = f"{file.path}, cluster {name!r}"
    address = urlsplit(cluster.server)
    if not cluster.server:
        raise KubeconfigError(f"{at}: server is missing")
    if address.scheme not in ("http", "https") or not address.hostname:
        raise KubeconfigError(f"{at}, server: must be an http or https URL, is {cluster.server!r}")
    if cluster.proxy_url and urlsplit(cluster.proxy_url).scheme != "http":
        raise KubeconfigError(
            f"{at}, proxy-url: must be an http URL (https and socks5 proxies are not supported), "
            f"is {cluster.proxy_url!r}"
        )
    return cluster.server.rstrip("/"), ServerTrust(
        authority=_material(file, at, cluster, "certificate_authority"),
        authority_file=_material_file(file, cluster, "certificate_authority"),
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
    )


def _identity(file: _File, name: str, user: _User) -> Identity:
    at = f"{file.path}, user {name!r}"
    if user.auth_provider is not None:
        raise KubeconfigError(
            f"{at}, auth-provider: Kubernetes has removed these; use an exec plugin instead"
        )
    certificate = _material(file, at, user, "client_certificate")
    key = _material(file, at, user, "client_key")
    if bool(certificate) != bool(key):
        lacking = "client-key" if certificate else "client-certificate"
        raise KubeconfigError(f"{at}: {lacking} is missing; certificate and key go together")
    token_file = file.resolve(user.token_file) if user.token_file else None
    if token_file is not None and not user.token:
        _read(token_file, f"{at}, tokenFile")
    return Identity(
        token=user.token,
        token_file=None if user.token else token_file,
        certificate=certificate,
        key=key,
        certificate_file=_material_file(file, user, "client_certificate"),
        key_file=_material_file(file, user, "client_key"),
        username=user.username,
        password=user.password,
        exec_plugin=_plugin(file, at, user.exec) if user.exec is not None else None,
    )


def _plugin(file: _File, at: str, plugin: _Exec) -> ExecPlugin:
    if not plugin.command:
        raise KubeconfigError(f"{at}, exec: command is missing")
    if plugin.api_version not in EXEC_VERSIONS:
        raise KubeconfigError(
            f"{at}, exec.apiVersion: must be {' or '.join(EXEC_VERSIONS)}, "
            f"is {plugin.api_version!r}"
        )
    # A bare name is found in PATH; one with a slash is relative to the file.
    command = str(file.resolve(plugin.command)) if "/" in plugin.command else plugin.command
    return ExecPlugin(
        command=command,
        args=tuple(plugin.args or ()),
        env={each.name: each.value for each in plugin.env or ()},
        api_version=plugin.api_version,
        install_hint=" ".join(plugin.install_hint.split()),
        provide_cluster_info=plugin.provide_cluster_info,
        source=at,
    )


def _material(file: _File, at: str, entry: _Cluster | _User, name: str) -> bytes:
    """A certificate or key in PEM, from the `-data` field or from a file."""
    wire = name.replace("_", "-")
    inline, named = getattr(entry, f"{name}_data"), getattr(entry, name)
    if not inline:
        return _pem(_read(file.resolve(named), f"{at}, {wire}"), f"{at}, {wire}") if named else b""
    try:
        found = base64.b64decode(inline, validate=True)
    except (binascii.Error, ValueError):
        raise KubeconfigError(f"{at}, {wire}-data: is not base64") from None
    return _pem(found, f"{at}, {wire}-data")


def _material_file(file: _File, entry: _Cluster | _User, name: str) -> Path | None:
    """The file of `_material`; None if the `-data` field has it."""
    named = getattr(entry, name)
    return file.resolve(named) if named and not getattr(entry, f"{name}_data") else None


def _pem(found: bytes, at: str) -> bytes:
    if b"-----BEGIN " not in found:
        raise KubeconfigError(f"{at}: holds no PEM (no line begins with -----BEGIN)")
    return found


def _read(path: Path, at: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise KubeconfigError(f"{at}: {path}: {reason}") from None
