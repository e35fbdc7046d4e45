"""Keys and certificates by which the agent and its pilots authenticate each other.

Without them, any user of the cluster could send jobs to the nodes of a pilot. Each agent is its own
certificate authority, whose key never leaves its memory. Each pilot has a key and a certificate of its own,
which are useless once that agent is gone.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ..protocol import write_private

if TYPE_CHECKING:
    from distributed.security import Security

_AUTHORITY_FILE, _CERTIFICATE_FILE, _KEY_FILE = "authority.pem", "certificate.pem", "key.pem"
# The clocks of nodes differ.
_CLOCK_SKEW = timedelta(hours=1)
# A pilot may wait in a queue for long.
_LIFETIME = timedelta(days=365)


class Authority:
    """A certificate authority."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jpsi pilots")])
        self._certificate = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def write(self, folder: Path, name: str) -> None:
        """Write a new key and certificate for `name` into a private directory, with this authority's own."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = _builder(subject, self._name, key).sign(self._key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        write_private(folder / _KEY_FILE, private)
        write_private(folder / _CERTIFICATE_FILE, certificate.public_bytes(serialization.Encoding.PEM))
        write_private(folder / _AUTHORITY_FILE, self._certificate.public_bytes(serialization.Encoding.PEM))


def dask_security(folder: Path) -> Security:
    """Return dask's settings for the certificates in a directory; dask then accepts only such peers."""
    from distributed.security import Security  # noqa: PLC0415  brings all of dask

    options: dict[str, Any] = {"tls_ca_file": str(folder / _AUTHORITY_FILE), "require_encryption": True}
    for role in ("scheduler", "worker", "client"):
        options[f"tls_{role}_cert"] = str(folder / _CERTIFICATE_FILE)
        options[f"tls_{role}_key"] = str(folder / _KEY_FILE)
    return Security(**options)


def server_context(folder: Path) -> ssl.SSLContext:
    """Return a server's TLS context for the certificates in a directory; it accepts only such peers."""
    return _context(ssl.PROTOCOL_TLS_SERVER, folder)


def client_context(folder: Path) -> ssl.SSLContext:
    """Return the TLS context of a client of such a server."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, folder)


def _context(protocol: int, folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    # the certificate proves that the authority knows a peer; hostnames prove nothing
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(folder / _AUTHORITY_FILE)
    context.load_cert_chain(folder / _CERTIFICATE_FILE, folder / _KEY_FILE)
    return context


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _LIFETIME)
    )
