"""SSL contexts: of a client from PEM texts, of a server from files or a self-signed certificate."""

import datetime
import ipaddress
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path

from moorage.errors import InputError, KubeconfigError
from moorage.live.connection import ServerTrust

VALID_DAYS = 365


def client_context(
    trust: ServerTrust, certificate: bytes = b"", key: bytes = b"", source: str = "kubeconfig"
) -> ssl.SSLContext:
    """The context of a client; without an authority the system's are trusted."""
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
        try:
            _load_pem(made, certificate.rstrip() + b"\n" + key)
        except (ssl.SSLError, OSError) as error:
            raise KubeconfigError(
                f"{source}, client-certificate and client-key: cannot be used together: "
                f"{getattr(error, 'reason', None) or error}"
            ) from None
    return made


def server_context(certificate_file: str = "", key_file: str = "") -> ssl.SSLContext:
    """The context of a server: the given certificate, or a new self-signed one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if bool(certificate_file) != bool(key_file):
        raise InputError("--tls-cert-file and --tls-private-key-file have to be given together")
    if certificate_file:
        try:
            context.load_cert_chain(certificate_file, key_file)
        except (ssl.SSLError, OSError) as error:
            reason = getattr(error, "reason", None) or error.strerror or error
            raise InputError(f"{certificate_file}, {key_file}: {reason}") from None
        return context
    _load_pem(context, b"".join(self_signed()))
    return context


def self_signed(names: Sequence[str] = ("localhost", "127.0.0.1")) -> tuple[bytes, bytes]:
    """A certificate for these names and addresses, and its key, in PEM."""
    from cryptography import x509  # Slow to import, and rarely needed.
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def general_name(name: str) -> x509.GeneralName:
        try:
            return x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            return x509.DNSName(name)

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0])])
    now = datetime.datetime.now(datetime.UTC)
    alternatives = x509.SubjectAlternativeName([general_name(name) for name in names])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(alternatives, critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _load_pem(context: ssl.SSLContext, pem: bytes) -> None:
    # OpenSSL reads a certificate from a file only; this one is private and deleted at once.
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        Path(file.name).write_bytes(pem)
        context.load_cert_chain(file.name)
