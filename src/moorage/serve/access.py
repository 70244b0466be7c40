"""Where the server listens, who may connect, and the kubeconfig for clients.

A loopback address needs no credentials. Any other address requires a token and TLS; without
`--tls-cert` the server makes a self-signed certificate.
"""

import base64
import contextlib
import ipaddress
import os
import socket
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from moorage.api import documents
from moorage.errors import InputError

MIN_TOKEN = 8
CONTEXT_NAME = "moorage"


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """The address and port of the server, its token and its certificate."""

    address: str
    port: int
    token: str = ""
    certificate: bytes = b""  # PEM; without one the server speaks plain HTTP
    key: bytes = b""

    def url(self, port: int) -> str:
        """The URL for clients on this machine."""
        host = self.address
        with contextlib.suppress(ValueError):
            ip = ipaddress.ip_address(host)
            if ip.is_unspecified:
                ip = ipaddress.ip_address("::1" if ip.version == 6 else "127.0.0.1")
            host = f"[{ip}]" if ip.version == 6 else str(ip)
        return f"{'https' if self.certificate else 'http'}://{host}:{port}"

    def ssl_context(self) -> ssl.SSLContext | None:
        """The TLS context of the server; None for plain HTTP."""
        if not self.certificate:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # The standard library reads certificates from files only.
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            Path(file.name).write_bytes(self.certificate + b"\n" + self.key)
            try:
                context.load_cert_chain(file.name)
            except (ssl.SSLError, OSError):
                raise InputError(
                    "--tls-cert, --tls-key: must be a certificate and its key, as PEM files"
                ) from None
        return context


def read_options(
    address: str, port: int, token_file: str | None, tls_cert: str | None, tls_key: str | None
) -> ServerAccess:
    """The access that the options of the command describe; raises InputError."""
    if (tls_cert is None) != (tls_key is None):
        options = ("--tls-key", "--tls-cert")
        missing, given = options if tls_key is None else reversed(options)
        raise InputError(f"{missing}: is missing; {given} needs it")
    local = is_loopback(address)
    token = "" if token_file is None else _read_token(token_file)
    if not local and not token:
        raise InputError(
            f"--bind-address {address}: a non-loopback address requires a token; pass a file with "
            "one: --token-file FILE"
        )
    certificate, key = b"", b""
    if tls_cert is not None and tls_key is not None:
        certificate, key = _read_file("--tls-cert", tls_cert), _read_file("--tls-key", tls_key)
    elif not local:
        certificate, key = self_signed_certificate(address)
    return ServerAccess(address, port, token, certificate, key)


def is_loopback(address: str) -> bool:
    """Whether an address is reachable from this machine only; raises InputError."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        raise InputError(
            f'--bind-address: must be an IP address such as 127.0.0.1, is "{address}"'
        ) from None


def _read_token(file: str) -> str:
    token = _read_file("--token-file", file).decode("ascii", "replace").strip()
    if len(token) < MIN_TOKEN or not token.isprintable() or " " in token:
        raise InputError(
            f"--token-file {file}: must hold one token of {MIN_TOKEN} letters or more "
            "and nothing else; make one with: openssl rand -hex 16"
        )
    return token


def _read_file(option: str, file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{option} {file}: {error.strerror or error}") from None


def self_signed_certificate(address: str) -> tuple[bytes, bytes]:
    """A certificate for an address and the names of this machine, and its key, as PEM."""
    from moorage.live import tls

    names = ("localhost", socket.gethostname(), "127.0.0.1", "::1", address)
    return tls.self_signed(tuple(dict.fromkeys(names)))


def kubeconfig_text(server: str, *, token: str = "", authority: bytes = b"") -> str:
    """A kubeconfig for one server; `authority` is the certificate that clients trust."""
    cluster: dict[str, str] = {"server": server}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    context = {"cluster": CONTEXT_NAME, "user": CONTEXT_NAME, "namespace": "default"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT_NAME, "cluster": cluster}],
        "users": [{"name": CONTEXT_NAME, "user": {"token": token} if token else {}}],
        "contexts": [{"name": CONTEXT_NAME, "context": context}],
        "current-context": CONTEXT_NAME,
    }
    return documents.as_yaml(config)


def write_kubeconfig(path: Path, content: str) -> None:
    """Write the file, readable by its owner only: it may contain a token."""
    target = path.resolve()  # A symbolic link is kept, its target is replaced.
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file():  # A pipe or a device is not replaced.
            path.write_text(content, encoding="utf-8")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
        temporary.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
