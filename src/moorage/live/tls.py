"""What a server is trusted by, and what we show it, as an SSL context."""

import ssl
import tempfile
from pathlib import Path

from moorage.errors import KubeconfigError
from moorage.live.connection import ServerTrust


def context(
    trust: ServerTrust, certificate: bytes = b"", key: bytes = b"", source: str = "kubeconfig"
) -> ssl.SSLContext:
    """An SSL context of PEM texts."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if trust.insecure:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    elif trust.authority:
        try:
            made.load_verify_locations(cadata=trust.authority.decode("ascii"))
        except (ssl.SSLError, UnicodeDecodeError):
            raise KubeconfigError(
                f"{source}, certificate-authority: is not a certificate in PEM"
            ) from None
    else:
        made.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if certificate:
        _load_chain(made, certificate, key, source)
    return made


def _load_chain(made: ssl.SSLContext, certificate: bytes, key: bytes, source: str) -> None:
    # OpenSSL takes a chain from a file only; it is readable by us alone, and gone at once.
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        Path(file.name).write_bytes(certificate.rstrip() + b"\n" + key)
        try:
            made.load_cert_chain(file.name)
        except (ssl.SSLError, OSError) as error:
            raise KubeconfigError(
                f"{source}, client-certificate and client-key: cannot be used together: "
                f"{getattr(error, 'reason', None) or error}"
            ) from None
