"""Connections that prove who is talking."""

from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
import trustme

from app.rpc.tls import TlsFiles

from .conftest import MakeStage
from .groups import gpu
from .stage.sights import Sight
from .stage.wires import Dial, Port


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Who signs the provider and the autoscaler."""
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA, tmp_path: Path) -> TlsFiles:
    """The provider's files."""
    files = TlsFiles(cert=tmp_path / "tls.crt", key=tmp_path / "tls.key", client_ca=tmp_path / "ca.crt")
    issued = authority.issue_cert("localhost")
    issued.private_key_pem.write_to_path(files.key)
    issued.cert_chain_pems[0].write_to_path(files.cert)
    authority.cert_pem.write_to_path(files.client_ca)
    return files


@pytest.fixture
def dial(authority: trustme.CA) -> Callable[[trustme.CA], Dial]:
    """Connects as an autoscaler whose certificate comes from this authority."""

    def signed_by(signer: trustme.CA) -> Dial:
        issued = signer.issue_cert("cluster-autoscaler.test")
        credentials = grpc.ssl_channel_credentials(
            root_certificates=authority.cert_pem.bytes(),
            private_key=issued.private_key_pem.bytes(),
            certificate_chain=issued.cert_chain_pems[0].bytes(),
        )
        own_pool = [("grpc.use_local_subchannel_pool", 1)]  # else all channels of a process share their connections
        return lambda port: grpc.secure_channel(f"localhost:{port}", credentials, own_pool)

    return signed_by


def test_a_good_certificate_is_let_in_and_a_bad_one_is_not(
    make_stage: MakeStage, authority: trustme.CA, tls: TlsFiles, dial: Callable[[trustme.CA], Dial]
) -> None:
    """Scenario 12. With a stranger's certificate every loop fails at its first call, and nothing changes meanwhile."""
    stage = make_stage(gpu(), port=Port(tls=tls, dial=dial(authority)))
    stage.cluster.submit("train", gpus=1)
    stage.until(60)
    waiting = Sight("target 1, 1 unregistered, 1 upcoming, InProgress", "1 provisioning", "1 provisioning")
    assert stage.sight("gpu") == waiting
    assert stage.failed_loops() == []
    stage.process.redial(dial(trustme.CA()))
    stage.until(110)
    assert {words.split(": ")[1] for words in stage.failed_loops()} == {"UNAVAILABLE"}
    assert len(stage.failed_loops()) == 5
    stage.process.redial(dial(authority))
    stage.until(160)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert len(stage.failed_loops()) == 5
    assert stage.story() == ["30 ScaledUpGroup gpu 1"]
