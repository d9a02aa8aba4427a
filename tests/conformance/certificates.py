"""Certificates for the tests of mutual TLS, made with the `openssl` command."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import grpc


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its key, both PEM files."""

    cert: Path
    key: Path

    def credentials(self, authority: "Pair") -> grpc.ChannelCredentials:
        """What a client that holds this pair presents to servers whose certificates the authority has signed."""
        return grpc.ssl_channel_credentials(authority.cert.read_bytes(), self.key.read_bytes(), self.cert.read_bytes())


def make_authority(directory: Path, name: str) -> Pair:
    """A certificate authority of its own."""
    pair = Pair(cert=directory / f"{name}.crt", key=directory / f"{name}.key")
    _openssl("req", "-x509", *_new_key(pair), "-days", "2", "-out", str(pair.cert))
    return pair


def issue(authority: Pair, directory: Path, name: str, alternative_names: str) -> Pair:
    """A pair whose certificate the authority has signed, for names like `DNS:localhost,IP:127.0.0.1`."""
    pair = Pair(cert=directory / f"{name}.crt", key=directory / f"{name}.key")
    extension = ("-addext", f"subjectAltName={alternative_names}", "-addext", "basicConstraints=CA:FALSE")
    signed_by = ("-CA", str(authority.cert), "-CAkey", str(authority.key))
    _openssl("req", "-x509", *_new_key(pair), "-days", "2", *extension, *signed_by, "-out", str(pair.cert))
    return pair


def _new_key(pair: Pair) -> tuple[str, ...]:
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc")
    return (*curve, "-keyout", str(pair.key), "-subj", f"/CN={pair.key.stem}")


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
