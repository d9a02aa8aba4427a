"""The expander over a real TLS connection, asked as old and new autoscalers ask, and the choice it makes."""

import ssl
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import grpc
import pytest
import trustme

from app.clock import FakeClock
from app.domain.cloud import RecordCatalogue
from app.domain.envelope import Cause
from app.domain.instance.commands import AttemptCreate, RecordCreateRefused, Refusal
from app.domain.nodegroup.commands import ApplyConfiguration, IncreaseSize
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract, InstanceType
from app.errors import ConfigurationError
from app.ledger.ledger import Ledger, open_ledger
from app.rpc.expander import build_expander
from app.rpc.gen import expander_pb2 as pb
from app.rpc.gen.expander_pb2_grpc import ExpanderStub
from app.rpc.tls import ServerFiles

from .authority import Authority

CAUSE = Cause(actor="test", correlation_id="test")


def kind(name: str, on_demand: str, spot: str) -> InstanceType:
    """A catalogue entry of which only name and prices matter."""
    return InstanceType(
        name=name,
        cpus=22,
        memory_gb=Decimal(120),
        gpus=1,
        gpu_memory_gb=Decimal(80),
        gpu_name=name,
        model=name,
        manufacturer="NVIDIA",
        storage_gb=None,
        on_demand_price=Decimal(on_demand),
        spot_price=Decimal(spot),
        currency="usd",
    )


def group(name: str, instance_type: str, contract: Contract = Contract.ON_DEMAND) -> NodeGroupSpec:
    """A node group of up to ten."""
    return NodeGroupSpec(
        name=name,
        min_size=0,
        max_size=10,
        instance_type=instance_type,
        image="i",
        locations=("FIN-01",),
        contracts=(contract,),
    )


@pytest.fixture
def clock() -> FakeClock:
    """Time that stands still."""
    return FakeClock()


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Iterator[Ledger]:
    """An H100 group for 2.29 an hour, an A100 group for 1.29, the same A100 as spot for 0.45."""
    ledger = open_ledger(tmp_path / "provider.db", clock, "test")
    specs = (group("h100", "H"), group("a100", "A"), group("a100-spot", "A", Contract.SPOT))
    ledger.execute(ApplyConfiguration(specs=specs, sha256="x", cluster_name="c"), CAUSE)
    ledger.execute(RecordCatalogue(types=(kind("H", "2.29", "0.8015"), kind("A", "1.29", "0.4515"))), CAUSE)
    yield ledger
    ledger.close()


@pytest.fixture
def expander(ledger: Ledger, clock: FakeClock, tmp_path: Path) -> Iterator[ExpanderStub]:
    """A connection as the autoscaler makes it: it checks our certificate and shows none."""
    ca = trustme.CA()
    issued = ca.issue_cert("localhost")
    files = ServerFiles(cert=tmp_path / "tls.crt", key=tmp_path / "tls.key")
    issued.private_key_pem.write_to_path(files.key)
    issued.cert_chain_pems[0].write_to_path(files.cert)
    server = build_expander(ledger, clock, "127.0.0.1:0", files)
    server.start()
    credentials = grpc.ssl_channel_credentials(root_certificates=ca.cert_pem.bytes())
    with grpc.secure_channel(f"localhost:{server.port}", credentials) as channel:
        yield ExpanderStub(channel)  # type: ignore[no-untyped-call] # generated without types
    server.stop(0)


def best(expander: ExpanderStub, *options: tuple[str, int]) -> list[str]:
    """The groups of the answer."""
    request = pb.BestOptionsRequest(options=[pb.Option(nodeGroupId=name, nodeCount=count) for name, count in options])
    answer: pb.BestOptionsResponse = expander.BestOptions(request, timeout=5)
    return [option.nodeGroupId for option in answer.options]


def run_out(ledger: Ledger, name: str, group: str) -> None:
    """An order of the group fails for want of stock."""
    ledger.execute(IncreaseSize(node_group=group, delta=1, names=(name,)), CAUSE)
    ledger.execute(AttemptCreate(instance=name), CAUSE)
    refused = RecordCreateRefused(
        instance=name,
        attempt=1,
        refusal=Refusal.NO_CAPACITY,
        status=503,
        code="service_unavailable",
        message="No capacity available",
        retry_after=None,
    )
    ledger.execute(refused, CAUSE)


def test_cheapest_option_wins(expander: ExpanderStub) -> None:
    """What counts is the money of the whole choice: one H100 for 2.29 against two A100 for 2.58."""
    assert best(expander, ("h100", 1), ("a100", 2)) == ["h100"]
    assert best(expander, ("h100", 2), ("a100", 2)) == ["a100"]


def test_spot_groups_count_at_the_spot_price(expander: ExpanderStub) -> None:
    """Three spot machines for 1.3545 are dearer than one on demand for 1.29, two for 0.903 are not."""
    assert best(expander, ("a100", 1), ("a100-spot", 3)) == ["a100"]
    assert best(expander, ("a100", 1), ("a100-spot", 2)) == ["a100-spot"]


def test_a_group_that_ran_out_stands_back_for_ten_minutes(
    expander: ExpanderStub, ledger: Ledger, clock: FakeClock
) -> None:
    """The cheapest machine that is not to be had costs the most: the pods wait for it."""
    run_out(ledger, "a100-spot-aaaaaaaa", "a100-spot")
    assert best(expander, ("a100", 1), ("a100-spot", 1)) == ["a100"]
    assert best(expander, ("a100-spot", 1)) == ["a100-spot"]
    clock.advance(timedelta(minutes=10))
    assert best(expander, ("a100", 1), ("a100-spot", 1)) == ["a100-spot"]


def test_options_of_nobody_we_know_are_all_given_back(expander: ExpanderStub) -> None:
    """An empty answer would mean no scale-up at all; a full one leaves the choice to the next expander."""
    assert best(expander, ("other", 1), ("another", 1)) == ["other", "another"]
    assert best(expander, ("other", 1), ("h100", 1)) == ["h100"]
    assert best(expander) == []


def test_equal_options_are_a_tie(expander: ExpanderStub) -> None:
    """The next expander in the autoscaler's list decides."""
    assert best(expander, ("h100", 1), ("h100", 1)) == ["h100", "h100"]


def test_pods_and_nodes_in_either_form_do_no_harm(expander: ExpanderStub) -> None:
    """Up to 1.34 the request carries embedded objects, later byte strings; we decide without them."""
    option = pb.Option(nodeGroupId="a100", nodeCount=1, pod=[b"\x0a\x00"], podBytes=[b"\x0a\x00"])
    request = pb.BestOptionsRequest(options=[option], nodeMap={"a100": b"\x0a\x00"}, nodeBytesMap={"a100": b""})
    answer: pb.BestOptionsResponse = expander.BestOptions(request, timeout=5)
    assert [chosen.nodeGroupId for chosen in answer.options] == ["a100"]


def test_unreadable_certificate_is_named(ledger: Ledger, clock: FakeClock, tmp_path: Path) -> None:
    """Refused at the start, with the key of the configuration."""
    files = ServerFiles(cert=tmp_path / "none.crt", key=tmp_path / "none.key")
    with pytest.raises(ConfigurationError, match=r"expander\.key: cannot read .*none\.key: No such file"):
        build_expander(ledger, clock, "127.0.0.1:0", files)


def test_a_renewed_certificate_is_shown_to_the_next_connection(
    ledger: Ledger, clock: FakeClock, tmp_path: Path
) -> None:
    """F65: else the autoscaler would go without us from the day on which the first one ends."""
    authority = Authority(tmp_path)
    files = ServerFiles(cert=authority.files.cert, key=authority.files.key)
    server = build_expander(ledger, clock, "127.0.0.1:0", files)
    server.start()
    try:
        assert shown(server.port) == first_certificate(files.cert.read_text())
        authority.issue_server()
        renewed = first_certificate(files.cert.read_text())
        assert shown(server.port) == renewed
        files.key.write_text("half of a key")
        assert shown(server.port) == renewed
    finally:
        server.stop(0)


def shown(port: int) -> bytes:
    """The certificate that a new connection is shown, DER."""
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", port), timeout=30))


def first_certificate(pem: str) -> bytes:
    """A file's certificate, DER."""
    return ssl.PEM_cert_to_DER_cert(pem)
