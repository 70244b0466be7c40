"""Where the playground listens, and who gets in.

On this machine's own address anybody may: it is a playground. Anywhere else there has to be a
token, and what passes is encrypted; without a certificate of the user's, one is made.
"""

import contextlib
import ipaddress
import os
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from moorage.errors import InputError

SHORTEST_TOKEN = 8


@dataclass(frozen=True, slots=True)
class Access:
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


def read(
    address: str, port: int, token_file: str | None, tls_cert: str | None, tls_key: str | None
) -> Access:
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
        from moorage.serve import certificates

        certificate, key = certificates.self_signed(address)
    return Access(address, port, token, certificate, key)


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
