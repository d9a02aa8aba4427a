"""Mutual TLS over a real connection: who gets in, who does not, and certificates that change meanwhile."""

import socket
import ssl
import warnings
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
import trustme

from app.errors import ConfigurationError
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.gen.externalgrpc_pb2_grpc import CloudProviderStub
from app.rpc.server import RpcServer
from app.rpc.tls import Certificates, TlsFiles
from tests.store.harness import opened

from .authority import Authority
from .serving import serving

NOT_SERVING_YET = grpc.StatusCode.UNAVAILABLE


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """A fresh authority."""
    return Authority(tmp_path)


def started(files: TlsFiles, directory: Path) -> Iterator[RpcServer]:
    """A server on an empty database: every admitted call is answered with "not serving yet"."""
    with opened(directory / "provider.db") as ledger, serving(ledger, tls=files) as server:
        yield server


@pytest.fixture
def server(authority: Authority, tmp_path: Path) -> Iterator[RpcServer]:
    """A server that lets in whoever has a certificate of the authority."""
    yield from started(authority.files, tmp_path)


def call(channel: grpc.Channel) -> tuple[grpc.StatusCode, str]:
    """What a client gets: status and words."""
    stub = CloudProviderStub(channel)  # type: ignore[no-untyped-call] # generated without types
    with channel, pytest.raises(grpc.RpcError) as caught:
        stub.Refresh(pb.RefreshRequest(), timeout=5)
    error = caught.value
    return error.code(), error.details() or ""


def test_client_of_our_authority_is_let_in(authority: Authority, server: RpcServer) -> None:
    """The autoscaler's own mode: TLS with a client certificate."""
    code, words = call(authority.client(server.port))
    assert code is NOT_SERVING_YET
    assert words.startswith("the cloud was never reached")


def test_client_of_a_foreign_authority_gets_nothing(authority: Authority, server: RpcServer) -> None:
    """The handshake fails: no word of ours reaches it."""
    code, words = call(authority.client(server.port, ca=trustme.CA()))
    assert code is grpc.StatusCode.UNAVAILABLE
    assert "the cloud was never reached" not in words


def test_client_without_a_certificate_gets_nothing(authority: Authority, server: RpcServer) -> None:
    """There is no mode in which only the server shows who it is."""
    credentials = grpc.ssl_channel_credentials(root_certificates=authority.ca.cert_pem.bytes())
    code, words = call(grpc.secure_channel(f"localhost:{server.port}", credentials))
    assert code is grpc.StatusCode.UNAVAILABLE
    assert "the cloud was never reached" not in words


def test_plain_text_client_gets_nothing(server: RpcServer) -> None:
    """F69: once TLS is configured there is no way around it."""
    code, words = call(grpc.insecure_channel(f"127.0.0.1:{server.port}"))
    assert code is grpc.StatusCode.UNAVAILABLE
    assert "the cloud was never reached" not in words


@pytest.mark.parametrize(
    ("newest", "is_answered"), [(ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True)], ids=["1.1", "1.2"]
)
def test_nothing_older_than_tls_1_2_is_spoken(
    authority: Authority, server: RpcServer, newest: ssl.TLSVersion, *, is_answered: bool
) -> None:
    """With the right certificate, and with a client whose library would let it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # old versions are what this is about
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, newest
    context.set_alpn_protocols(["h2"])
    context.load_verify_locations(cadata=authority.ca.cert_pem.bytes().decode())
    authority.ca.issue_cert("cluster-autoscaler.test").configure_cert(context)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        try:
            with context.wrap_socket(connection, server_hostname="localhost") as secured:
                spoken = secured.version()
        except (ssl.SSLEOFError, ConnectionResetError):  # the server hangs up; other words would be our own library's
            assert not is_answered
        else:
            assert is_answered
            assert spoken == "TLSv1.2"


def test_only_names_on_the_list_are_let_in(authority: Authority, tmp_path: Path) -> None:
    """One authority may serve a whole cluster; not everything it signs is the autoscaler."""
    files = TlsFiles(
        cert=authority.files.cert,
        key=authority.files.key,
        client_ca=authority.files.client_ca,
        allowed_clients=("cluster-autoscaler.test",),
    )
    for server in started(files, tmp_path):
        assert call(authority.client(server.port))[0] is NOT_SERVING_YET
        code, words = call(authority.client(server.port, name="grafana.test"))
        assert code is grpc.StatusCode.PERMISSION_DENIED
        assert words == "the client's certificate carries none of the names in tls.allowed_clients"


def test_swapped_certificates_are_used_for_the_next_connection(authority: Authority, server: RpcServer) -> None:
    """Rotation without a restart (F65): the old authority goes, the new one comes."""
    assert call(authority.client(server.port))[0] is NOT_SERVING_YET
    before = trustme.CA()
    authority.ca, before = before, authority.ca
    authority.issue_server()
    authority.believe(authority.ca)
    assert call(authority.client(server.port))[1].startswith("the cloud was never reached")
    assert "the cloud was never reached" not in call(authority.client(server.port, ca=before))[1]


def test_half_written_certificates_do_not_replace_good_ones(authority: Authority, server: RpcServer) -> None:
    """A swap is not atomic everywhere: key and certificate that do not fit are waited out."""
    authority.ca.issue_cert("127.0.0.1", "localhost").private_key_pem.write_to_path(authority.files.key)
    assert call(authority.client(server.port))[1].startswith("the cloud was never reached")


@pytest.mark.parametrize(
    ("name", "content", "path", "words"),
    [
        ("cert", None, "tls.cert", "cannot read"),
        ("key", b"nonsense", "tls.cert", "are no certificate and its key"),
        ("client_ca", b"nonsense", "tls.client_ca", "holds no PEM certificates"),
    ],
)
def test_unusable_files_are_named(
    authority: Authority, name: str, content: bytes | None, path: str, words: str
) -> None:
    """Refused at the start, not at the first handshake."""
    victim: Path = getattr(authority.files, name)
    victim.unlink()
    if content is not None:
        victim.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        Certificates(authority.files)
    (problem,) = caught.value.problems
    assert problem.path == path
    assert words in problem.message
    assert "PRIVATE KEY" not in str(caught.value)
