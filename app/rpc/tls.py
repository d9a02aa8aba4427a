"""Mutual TLS: our certificate, the authority of the clients, both read again when their files change.

Cluster Autoscaler has two modes: plain text, or TLS with a client certificate. So there are two here as well. gRPC's
own minimum, TLS 1.2, applies.
"""

import ssl
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from app.errors import ConfigurationError, Problem
from app.log import get_logger

CONNECTION_AGE_MS = 30 * 60 * 1000
"""The autoscaler keeps one connection for ever; sending it away now and then makes it see a new certificate."""

_log = get_logger(room="tls")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """PEM files: our chain and key, the authorities that sign clients. `allowed_clients` are alternative names.

    Empty `allowed_clients` lets in every client with a certificate of `client_ca`.
    """

    cert: Path
    key: Path
    client_ca: Path
    allowed_clients: tuple[str, ...] = ()

    def read(self) -> "Pems":
        """What the files hold now.

        Raises:
            ConfigurationError: a file cannot be read, is no PEM, or key and certificate do not belong together.
        """
        problems: list[Problem] = []
        contents: dict[str, bytes] = {}
        for name in ("cert", "key", "client_ca"):
            path: Path = getattr(self, name)
            try:
                contents[name] = path.read_bytes()
            except OSError as error:
                problems.append(_problem(name, f"cannot read {path}: {error.strerror}"))
        if not problems:
            problems.extend(self._misfits())
        if problems:
            raise ConfigurationError(tuple(problems))
        return Pems(cert=contents["cert"], key=contents["key"], client_ca=contents["client_ca"])

    def _misfits(self) -> list[Problem]:
        """Let OpenSSL judge what gRPC would only complain about at the first handshake."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        problems: list[Problem] = []
        try:
            context.load_cert_chain(self.cert, self.key, password=_no_password)
        except (ssl.SSLError, ValueError, OSError) as error:
            words = f"{self.cert} and {self.key} are no certificate and its key: {_reason(error)}"
            problems.append(_problem("cert", words))
        try:
            context.load_verify_locations(self.client_ca)
        except (ssl.SSLError, OSError) as error:
            problems.append(_problem("client_ca", f"{self.client_ca} holds no certificates: {_reason(error)}"))
        return problems


def _no_password() -> str:
    raise ValueError("the key is encrypted; give one without a password")


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)


def _problem(name: str, message: str) -> Problem:
    return Problem(source="tls", line=None, path=f"tls.{name}", message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pems:
    """Contents of the three files."""

    cert: bytes = field(repr=False)
    key: bytes = field(repr=False)
    client_ca: bytes = field(repr=False)

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        """As gRPC takes it."""
        return grpc.ssl_server_certificate_configuration([(self.key, self.cert)], root_certificates=self.client_ca)


class Certificates:
    """Hands gRPC the certificates for each handshake; files that changed and are good replace the ones in use."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._seen = self._stamps()
        self.pems = files.read()

    def credentials(self) -> grpc.ServerCredentials:
        """Server credentials that demand a client certificate."""
        return grpc.dynamic_ssl_server_credentials(
            self.pems.configuration(),
            self._fetch,  # type: ignore[arg-type] # None means "no change", says gRPC's documentation
            require_client_authentication=True,
        )

    def _stamps(self) -> tuple[object, ...]:
        """What tells a changed file, also one that is swapped by a link as kubelets do it."""
        stamps: list[object] = []
        for path in (self._files.cert, self._files.key, self._files.client_ca):
            try:
                stat = path.stat()
            except OSError:
                stamps.append(None)
            else:
                stamps.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        return tuple(stamps)

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """Called at every handshake: new certificates, or None to go on with the ones in use."""
        with self._lock:
            stamps = self._stamps()
            if stamps == self._seen:
                return None
            self._seen = stamps
            try:
                pems = self._files.read()
            except ConfigurationError as error:
                _log.error("changed certificates are not usable, keeping the old ones", error=error.message)
                return None
            if pems == self.pems:
                return None
            self.pems = pems
            _log.info("certificates replaced")
            return pems.configuration()


def is_allowed(context: grpc.ServicerContext, allowed_clients: tuple[str, ...]) -> bool:
    """Whether the caller's certificate carries one of the allowed alternative names, if there is such a list."""
    if not allowed_clients:
        return True
    names: Iterable[bytes] = context.auth_context().get("x509_subject_alternative_name", ())  # type: ignore[assignment] # a list
    return any(name.decode(errors="replace") in allowed_clients for name in names)
