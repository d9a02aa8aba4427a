"""Mutual TLS: our certificate, the authority of the clients, both read again when their files change.

Cluster Autoscaler has two modes: plain text, or TLS with a client certificate. So there are two here as well. gRPC's
own minimum, TLS 1.2, applies.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import grpc

from app.certificates import check_authorities, check_pair
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

    section: ClassVar = "tls"
    cert: Path
    key: Path
    client_ca: Path
    allowed_clients: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFiles:
    """PEM files of a port that shows its certificate and asks for none: the expander's."""

    section: ClassVar = "expander"
    cert: Path
    key: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Pems:
    """Contents of the files; without `client_ca` nobody is asked for a certificate."""

    cert: bytes = field(repr=False)
    key: bytes = field(repr=False)
    client_ca: bytes | None = field(repr=False)

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        """As gRPC takes it."""
        return grpc.ssl_server_certificate_configuration([(self.key, self.cert)], root_certificates=self.client_ca)


class Certificates:
    """Hands gRPC the certificates for each handshake; files that changed and are good replace the ones in use.

    Handshakes are rare and the files small, so they are read at each: no time stamp can hide a change. `pems` is what
    was read last.
    """

    def __init__(self, files: TlsFiles | ServerFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self.pems = self._read()
        self._refuse_misfits(self.pems)
        self._complaint = ""

    def credentials(self) -> grpc.ServerCredentials:
        """Server credentials that demand a client certificate, if there is an authority for those."""
        return grpc.dynamic_ssl_server_credentials(
            self.pems.configuration(),
            self._fetch,  # type: ignore[arg-type] # None means "no change", says gRPC's documentation
            require_client_authentication=isinstance(self._files, TlsFiles),
        )

    def _read(self) -> Pems:
        problems: list[Problem] = []

        def content(name: str, path: Path) -> bytes:
            try:
                return path.read_bytes()
            except OSError as error:
                problems.append(self._problem(name, f"cannot read {path}: {error.strerror}"))
                return b""

        files = self._files
        cert, key = content("cert", files.cert), content("key", files.key)
        client_ca = content("client_ca", files.client_ca) if isinstance(files, TlsFiles) else None
        if problems:
            raise ConfigurationError(tuple(problems))
        return Pems(cert=cert, key=key, client_ca=client_ca)

    def _refuse_misfits(self, pems: Pems) -> None:
        """Judge what was read, not the files: those may be others by now. gRPC would fail at the handshake."""
        problems: list[Problem] = []
        files = self._files
        try:
            check_pair(pems.cert, pems.key)
        except ValueError as error:
            words = f"{files.cert} and {files.key} are no certificate and its key: {error}"
            problems.append(self._problem("cert", words))
        if isinstance(files, TlsFiles):
            try:
                check_authorities(pems.client_ca or b"")
            except ValueError:
                problems.append(self._problem("client_ca", f"{files.client_ca} holds no PEM certificates"))
        if problems:
            raise ConfigurationError(tuple(problems))

    def _problem(self, name: str, message: str) -> Problem:
        section = self._files.section
        return Problem(source=section, line=None, path=f"{section}.{name}", message=message)

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """Called at every handshake: new certificates, or None to go on with the ones in use."""
        with self._lock:
            try:
                pems = self._read()
                if pems == self.pems:
                    return None
                self.pems = pems
                self._refuse_misfits(pems)
            except ConfigurationError as error:
                if error.message != self._complaint:
                    self._complaint = error.message
                    _log.error("changed certificates are not usable, keeping the old ones", error=error.message)
                return None
            self._complaint = ""
            _log.info("certificates replaced", section=self._files.section)
            return pems.configuration()


def is_allowed(context: grpc.ServicerContext, allowed_clients: tuple[str, ...]) -> bool:
    """Whether the caller's certificate carries one of the allowed alternative names, if there is such a list."""
    if not allowed_clients:
        return True
    names: Iterable[bytes] = context.auth_context().get("x509_subject_alternative_name", ())  # type: ignore[assignment] # a list
    return any(name.decode(errors="replace") in allowed_clients for name in names)
