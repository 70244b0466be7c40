"""Who may talk to the server: anybody on this machine, others only with a token and over TLS."""

import ipaddress
import os
import secrets
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from moorage.errors import InputError

if TYPE_CHECKING:  # Needed only where TLS is: an extra.
    from cryptography import x509

LOOPBACK_NAMES = ("localhost", "ip6-localhost")
_DAYS = 825
_CERTIFICATE, _KEY = "server.crt", "server.key"


class TlsFiles(NamedTuple):
    """A certificate and its private key."""

    certificate: Path
    key: Path


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    if host in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_exposure(host: str, token: str, tls: TlsFiles | None) -> None:
    """Refuse to listen where others can reach us without a token and TLS."""
    if is_loopback(host):
        return
    missing = [what for what, there in (("a token", token), ("TLS", tls)) if not there]
    if missing:
        raise InputError(
            f"--address {host}: other machines could reach it, so it needs {' and '.join(missing)}; "
            "listen on 127.0.0.1 instead, or give both"
        )


def new_token() -> str:
    """A bearer token that nobody guesses."""
    return secrets.token_urlsafe(32)


def ssl_context(files: TlsFiles) -> ssl.SSLContext:
    """What a server needs to speak TLS; raises InputError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.certificate, files.key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(
            f"{files.certificate}, {files.key}: cannot be used as certificate and key: {error}"
        ) from None
    return context


def own_certificate(folder: Path, hosts: Iterable[str]) -> TlsFiles:
    """A certificate of our own for these names and addresses, kept in a folder and reused."""
    files = TlsFiles(folder / _CERTIFICATE, folder / _KEY)
    wanted = sorted({"127.0.0.1", "localhost", *hosts})
    if files.certificate.exists() and files.key.exists() and _covers(files.certificate, wanted):
        return files
    folder.mkdir(parents=True, exist_ok=True)
    certificate, key = _generated(wanted)
    _write(files.key, key, mode=0o600)
    _write(files.certificate, certificate, mode=0o644)
    return files


def _write(path: Path, content: bytes, mode: int) -> None:
    # Made with its mode: there is no moment at which others could read a key.
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)


def _covers(path: Path, hosts: list[str]) -> bool:
    """Whether a certificate of ours is for these hosts and good for another week."""
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(path.read_bytes())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, OSError, x509.ExtensionNotFound):
        return False
    known = {str(each.value) for each in names}
    soon = datetime.now(UTC) + timedelta(days=7)  # noqa: TID251  # certificates live in real time
    return set(hosts) <= known and found.not_valid_after_utc > soon


def _generated(hosts: list[str]) -> tuple[bytes, bytes]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "moorage serve")])
    now = datetime.now(UTC)  # noqa: TID251  # certificates live in real time
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName([_name(each) for each in hosts]), critical=False)
        # Its own authority, so that a kubeconfig can name it as the one to trust.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _name(host: str) -> "x509.GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return x509.DNSName(host)
