"""A private authority whose certificates servers and clients of these tests have."""

from dataclasses import dataclass
from pathlib import Path

import grpc
import trustme

from app.rpc.tls import TlsFiles

CLIENT = "cluster-autoscaler.test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a client shows, and the authorities that it believes."""

    key: bytes
    chain: bytes
    roots: bytes

    def connect(self, port: int) -> grpc.Channel:
        """A connection of its own: gRPC would give every client of this process one and the same."""
        credentials = grpc.ssl_channel_credentials(self.roots, self.key, self.chain)
        return grpc.secure_channel(f"localhost:{port}", credentials, [("grpc.use_local_subchannel_pool", 1)])


class Authority:
    """A private authority that writes certificates where the server looks for them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ca = trustme.CA()
        self.files = TlsFiles(cert=directory / "tls.crt", key=directory / "tls.key", client_ca=directory / "ca.crt")
        self.issue_server()
        self.believe(self.ca)

    def issue_server(self) -> None:
        """A new certificate for the server, written over the old one, the key first."""
        issued = self.ca.issue_cert("127.0.0.1", "localhost")
        issued.private_key_pem.write_to_path(self.files.key)
        issued.cert_chain_pems[0].write_to_path(self.files.cert)

    def believe(self, *authorities: trustme.CA) -> None:
        """Let in the clients of these authorities."""
        self.files.client_ca.write_bytes(bundle(*authorities))

    def identity(self, *roots: trustme.CA, name: str = CLIENT, ca: trustme.CA | None = None) -> Identity:
        """Of this authority, or of another that the server may not know; believes this one unless told which."""
        issued = (ca or self.ca).issue_cert(name)
        return Identity(
            key=issued.private_key_pem.bytes(),
            chain=issued.cert_chain_pems[0].bytes(),
            roots=bundle(*(roots or (self.ca,))),
        )

    def client(self, port: int, name: str = CLIENT, ca: trustme.CA | None = None) -> grpc.Channel:
        """A connection with a fresh certificate."""
        return self.identity(name=name, ca=ca).connect(port)


def bundle(*authorities: trustme.CA) -> bytes:
    """Their certificates in one file."""
    return b"".join(authority.cert_pem.bytes() for authority in authorities)
