"""Certificates: reading when one ends, and making a small authority of one's own."""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_AUTHORITY = timedelta(days=3650)
_BACKDATED = timedelta(minutes=5)  # a peer's clock may be behind ours
_CURVE = ec.SECP256R1
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_LONGEST_NAME = 253


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        """The certificate, PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key, PEM, not encrypted: a server has to read it without anybody typing."""
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def expiry_of(path: Path) -> datetime:
    """When the first certificate of a PEM file that ends first ends, in UTC.

    Raises:
        OSError: the file cannot be read.
        ValueError: it holds no certificate.
    """
    return min(certificate.not_valid_after_utc for certificate in x509.load_pem_x509_certificates(path.read_bytes()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a server shows of itself: its certificate, DER, and the names and addresses that it is good for."""

    der: bytes
    names: tuple[str, ...]


def shown_in(pem: bytes) -> Shown:
    """The first certificate of a PEM file, which is the server's own.

    Raises:
        ValueError: there is none.
    """
    certificate = x509.load_pem_x509_certificates(pem)[0]
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        alternatives = x509.SubjectAlternativeName([])
    names = (*alternatives.get_values_for_type(x509.DNSName), *alternatives.get_values_for_type(x509.IPAddress))
    return Shown(der=certificate.public_bytes(serialization.Encoding.DER), names=tuple(map(str, names)))


def check_pair(certificate_pem: bytes, key_pem: bytes) -> None:
    """Whether a server can use the two together.

    Raises:
        ValueError: with the reason: no certificate, no key, an encrypted key, or the key of another certificate.
    """
    try:
        certificate = x509.load_pem_x509_certificates(certificate_pem)[0]
    except ValueError as error:
        raise ValueError("there is no PEM certificate in the one") from error
    try:
        key = serialization.load_pem_private_key(key_pem, password=None)
    except TypeError as error:
        raise ValueError("the key is encrypted; give one without a password") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError("there is no PEM private key in the other") from error
    if key.public_key() != certificate.public_key():
        raise ValueError("the key is another certificate's")


def check_authorities(pem: bytes) -> None:
    """Whether there is at least one certificate, and nothing among them that is none.

    Raises:
        ValueError: there is not.
    """
    x509.load_pem_x509_certificates(pem)


def make_authority(name: str, now: datetime) -> Pair:
    """A private authority that signs for ten years and only end certificates."""
    key = ec.generate_private_key(_CURVE())
    subject = _named(name)
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(subject, subject, key, now, _AUTHORITY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(certificate=certificate, key=key)


def issue(authority: Pair, names: Sequence[str], *, is_server: bool, now: datetime, lifetime: timedelta) -> Pair:
    """A certificate for these DNS names and addresses, for a server or for a client, signed by the authority."""
    key = ec.generate_private_key(_CURVE())
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if is_server else ExtendedKeyUsageOID.CLIENT_AUTH
    certificate = (
        _builder(_named(names[0]), authority.certificate.subject, key, now, lifetime)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return Pair(certificate=certificate, key=key)


def authority_of(certificate_pem: bytes, key_pem: bytes) -> Pair:
    """An authority made earlier.

    Raises:
        ValueError: the texts are no certificate and key, or not of one authority of ours.
    """
    certificate = x509.load_pem_x509_certificate(certificate_pem)
    key = serialization.load_pem_private_key(key_pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise ValueError("the key is not the certificate's")
    return Pair(certificate=certificate, key=key)


def is_name(text: str) -> bool:
    """Whether a certificate can be for this: an address, or a DNS name, whose first label may be `*`."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        labels = text.removeprefix("*.").split(".")
        return len(text) <= _LONGEST_NAME and all(_LABEL.fullmatch(label) for label in labels)
    return True


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + lifetime)
    )
