import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from app.certificates import expiry_of, shown_in
from app.errors import ProviderError
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.gen.externalgrpc_pb2_grpc import CloudProviderStub
from app.rpc.tls import TlsFiles
from tests.rpc.serving import address_of, serving
from tests.store.harness import opened, start

from .prompt import run, typed

FILES = ["ca.crt", "ca.key", "client.crt", "client.key", "tls.crt", "tls.key"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command makes for a server on this machine."""
    directory = tmp_path_factory.mktemp("made") / "certs"
    typed("certs", directory, "--name", "localhost", "--name", "127.0.0.1", "--days", "30")
    return directory


def ask(address: str, made: Path, stranger: Path | None = None) -> list[str]:
    """The names of the node groups, asked as the autoscaler with these files does."""
    ours = stranger or made
    credentials = grpc.ssl_channel_credentials(
        root_certificates=(made / "ca.crt").read_bytes(),
        private_key=(ours / "client.key").read_bytes(),
        certificate_chain=(ours / "client.crt").read_bytes(),
    )
    with grpc.secure_channel(address, credentials) as channel:
        stub = CloudProviderStub(channel)  # type: ignore[no-untyped-call] # generated without types
        answer = stub.NodeGroups(pb.NodeGroupsRequest(), timeout=30)
        return [group.id for group in answer.nodeGroups]


def test_the_files_are_a_working_pair_and_let_nobody_else_in(made: Path, tmp_path: Path) -> None:
    """The autoscaler with the client's files is answered; one with a stranger's gets nothing."""
    typed("certs", tmp_path / "stranger")
    files = TlsFiles(cert=made / "tls.crt", key=made / "tls.key", client_ca=made / "ca.crt")
    with opened(tmp_path / "provider.db") as ledger, serving(ledger, tls=files) as server:
        start(ledger)
        assert ask(address_of(server), made) == ["gpu"]
        with pytest.raises(grpc.RpcError):
            ask(address_of(server), made, stranger=tmp_path / "stranger")


def test_keys_are_for_their_owner_alone(made: Path) -> None:
    """Who has a key is the server."""
    assert sorted(path.name for path in made.iterdir()) == FILES
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made.iterdir()}
    assert {name for name, mode in modes.items() if mode == 0o600} == {"ca.key", "client.key", "tls.key"}
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_each_certificate_is_good_for_its_purpose_alone(made: Path) -> None:
    """A client's key that could pose as the server would make the machine in the middle."""
    server = x509.load_pem_x509_certificate((made / "tls.crt").read_bytes())
    client = x509.load_pem_x509_certificate((made / "client.crt").read_bytes())
    authority = x509.load_pem_x509_certificate((made / "ca.crt").read_bytes())
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    purposes = [list(one.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) for one in (server, client)]
    assert purposes == [[ExtendedKeyUsageOID.SERVER_AUTH], [ExtendedKeyUsageOID.CLIENT_AUTH]]
    limits = authority.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (limits.ca, limits.path_length) == (True, 0)
    left = expiry_of(made / "tls.crt") - datetime.now(UTC)  # noqa: TID251 - made by the system's clock
    assert timedelta(days=29) < left <= timedelta(days=30)


def test_a_second_call_renews_and_keeps_the_authority(tmp_path: Path) -> None:
    """Nobody has to trust anything new."""
    typed("certs", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    typed("certs", tmp_path)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(after) == FILES
    assert {name for name in FILES if before[name] == after[name]} == {"ca.crt", "ca.key"}


@pytest.mark.parametrize("name", ["", " ", "a b", "-a.example", "a..b", "ö.example", "x" * 64, "1.2.3.4/24"])
def test_what_is_no_name_is_refused_before_anything_is_made(name: str, tmp_path: Path) -> None:
    """A certificate for it would be good for nobody, if it could be made at all."""
    for option in ("--name", "--client"):
        result = run("certs", tmp_path / "certs", option, name)
        assert result.exit_code == 2
        assert "is neither a DNS name such as" in " ".join(result.output.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["localhost", "*.example.com", "a-1.b", "10.0.0.1", "::1"])
def test_names_that_are_some_are_taken(name: str, tmp_path: Path) -> None:
    """Hosts, hosts of a domain, addresses."""
    typed("certs", tmp_path, "--name", name)
    assert shown_in((tmp_path / "tls.crt").read_bytes()).names == (name,)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda directory: (directory / "ca.key").unlink(), "ca.key is missing beside its other half"),
        (lambda directory: (directory / "ca.crt").unlink(), "ca.crt is missing beside its other half"),
        (lambda directory: (directory / "ca.key").write_text("?"), "are no authority of ours"),
        (
            lambda directory: (directory / "ca.key").write_bytes((directory / "tls.key").read_bytes()),
            "the key is not the certificate's",
        ),
    ],
)
def test_half_an_authority_is_told_and_nothing_is_touched(spoil: object, words: str, tmp_path: Path) -> None:
    """A new one in its place would lock the autoscaler out."""
    typed("certs", tmp_path)
    spoil(tmp_path)  # type: ignore[operator] # a function, whatever lambdas are called
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = run("certs", tmp_path)
    assert isinstance(result.exception, ProviderError)
    assert words in result.exception.message
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
