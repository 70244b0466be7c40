"""A certificate of our own, for those who have none; it lasts as long as the server runs."""

import datetime
import ipaddress
import socket

from moorage.errors import InputError

DAYS = 30


def self_signed(address: str) -> tuple[bytes, bytes]:
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
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
