"""Where the server listens, who may connect, and the kubeconfig for clients.

A loopback address needs no credentials. Any other address requires a token and TLS; without
`--tls-cert` the server makes a self-signed certificate.
"""

import base64
import contextlib
import datetime
import ipaddress
import os
import socket
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from moorage.errors import InputError

SHORTEST_TOKEN = 8


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """An address, a port, and the keys to it."""

    address: str
    port: int
    token: str = ""
    certificate: bytes = b""  # PEM; without one, plain HTTP is spoken
    key: bytes = b""

    def url(self, port: int) -> str:
        """Where clients on this machine find it."""
        host = self.address
        with contextlib.suppress(ValueError):
            ip = ipaddress.ip_address(host)
            if ip.is_unspecified:
                ip = ipaddress.ip_address("::1" if ip.version == 6 else "127.0.0.1")
            host = f"[{ip}]" if ip.version == 6 else str(ip)
        return f"{'https' if self.certificate else 'http'}://{host}:{port}"

    def context(self) -> ssl.SSLContext | None:
        """What a server needs to speak TLS; None if it does not."""
        if not self.certificate:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # The standard library reads certificates from files only.
        with _private_file(self.certificate + b"\n" + self.key) as path:
            try:
                context.load_cert_chain(path)
            except (ssl.SSLError, OSError):
                raise InputError(
                    "--tls-cert, --tls-key: must be a certificate and its key, as PEM files"
                ) from None
        return context


def read_options(
    address: str, port: int, token_file: str | None, tls_cert: str | None, tls_key: str | None
) -> ServerAccess:
    """What the options of the command say; raises InputError."""
    if (tls_cert is None) != (tls_key is None):
        missing, given = (
            ("--tls-key", "--tls-cert") if tls_key is None else ("--tls-cert", "--tls-key")
        )
        raise InputError(f"{missing}: is missing; {given} needs it")
    alone = is_loopback(address)
    token = "" if token_file is None else _token(token_file)
    if not alone and not token:
        raise InputError(
            f"--bind-address {address}: is open to others, so clients have to show a token; "
            "name a file that holds one: --token-file FILE"
        )
    certificate, key = b"", b""
    if tls_cert is not None and tls_key is not None:
        certificate, key = _bytes("--tls-cert", tls_cert), _bytes("--tls-key", tls_key)
    elif not alone:
        certificate, key = self_signed_certificate(address)
    return ServerAccess(address, port, token, certificate, key)


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address; raises InputError if it is none."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        raise InputError(
            f'--bind-address: must be an IP address such as 127.0.0.1, is "{address}"'
        ) from None


def _token(file: str) -> str:
    token = _bytes("--token-file", file).decode("ascii", "replace").strip()
    if len(token) < SHORTEST_TOKEN or not token.isprintable() or " " in token:
        raise InputError(
            f"--token-file {file}: must hold one token of {SHORTEST_TOKEN} letters or more "
            "and nothing else; make one with: openssl rand -hex 16"
        )
    return token


def _bytes(option: str, file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{option} {file}: {error.strerror or error}") from None


@contextlib.contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield path
    finally:
        os.unlink(path)  # noqa: PTH108 a path of the standard library's making


CERTIFICATE_DAYS = 30


def self_signed_certificate(address: str) -> tuple[bytes, bytes]:
    """A certificate for an address and this machine's names, and its key, as PEM."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
    except ImportError:
        raise InputError(
            "to make a certificate, cryptography is needed: pip install 'moorage[serve]'; "
            "or name one: --tls-cert FILE --tls-key FILE"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "moorage")])
    addresses = {ipaddress.ip_address(each) for each in ("127.0.0.1", "::1", address)}
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.DNSName(socket.gethostname())]
    names += [x509.IPAddress(each) for each in sorted(addresses, key=str)]
    now = datetime.datetime.now(datetime.UTC)  # noqa: TID251 a shell may know the time
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=CERTIFICATE_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


CONTEXT_NAME = "moorage"


def kubeconfig_text(server: str, *, token: str = "", authority: bytes = b"") -> str:
    """A kubeconfig for one server; `authority` is the certificate by which it can be known."""
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
    return yaml.safe_dump(config, sort_keys=False)


def write_kubeconfig(path: Path, content: str) -> None:
    """Write the file for nobody else to read: it may hold a token."""
    target = path.resolve()  # A link stays one.
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file():  # A pipe or a device is not to be replaced.
            path.write_text(content, encoding="utf-8")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
        beside.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
