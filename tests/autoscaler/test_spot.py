"""Spot machines and prices."""

from decimal import Decimal

import pytest

from app.domain.offering import Contract

from .ca.expanders import node_price, pod_price
from .ca.flags import Flags
from .ca.releases import ENDS
from .conftest import MakeStage
from .groups import gpu, spot
from .stage.sights import Sight
from .stage.stage import minutes

H100 = "1H100.80S.30V"


def test_a_spot_machine_is_evicted_under_a_ready_node(make_stage: MakeStage) -> None:
    """Scenario 13, F27, F32. Believed after two lists and a look-up; the target falls with it; the pod decides anew."""
    stage = make_stage(spot())
    stage.cluster.submit("train", gpus=1)
    stage.until(200)
    (machine,) = stage.world.state.instances.values()
    assert machine.is_spot
    (node,) = stage.cluster.nodes()
    assert node.labels["verda.com/contract"] == "spot"
    stage.cloud.trouble("evict")
    stage.until(210)
    assert stage.sight("spot") == Sight("target 1, 1 ready, NoActivity", "1 running", "nothing")
    stage.until(220)
    assert stage.sight("spot") == Sight("target 0, NoActivity", "nothing", "nothing")
    stage.until(300)
    assert stage.cluster.nodes() == []
    assert stage.cluster.pending() == ["train"]
    stage.until(460)
    assert stage.sight("spot") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.story() == ["30 ScaledUpGroup spot 1", "330 ScaledUpGroup spot 1"]
    assert stage.calls("NodeGroupDeleteNodes") == []
    assert stage.failed_loops() == []


def test_an_eviction_between_taint_and_deletion(make_stage: MakeStage) -> None:
    """The node is lost in the very seconds in which it was to be deleted: OK, nothing lowered twice, nobody crashes."""
    stage = make_stage(spot())
    stage.cluster.submit("train", gpus=1)
    stage.until(200)
    stage.cluster.finish("train")
    stage.until(795)
    stage.cloud.trouble("evict")
    stage.until(860)
    assert stage.sight("spot") == Sight("target 0, NoActivity", "nothing", "nothing")
    assert set(stage.calls("NodeGroupDeleteNodes")) <= {"OK"}
    assert stage.failed_loops() == []


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_ghosts_of_evicted_machines_do_not_stop_the_cluster(make_stage: MakeStage) -> None:
    """F27. Three evictions, and nobody removes the dead nodes. They belong to no group and mask nothing there."""
    stage = make_stage(spot(max_size=4))
    stage.kubelets.buries = False
    stage.cluster.submit("train-1", "train-2", "train-3", gpus=1)
    stage.until(200)
    stage.cloud.trouble("evict_wave")
    stage.until(300)
    assert stage.sight("spot") == Sight("target 0, NoActivity", "nothing", "nothing")
    assert [node.ready for node in stage.cluster.nodes()] == [False, False, False]
    stage.cluster.submit("train-4", gpus=1)
    stage.until(480)
    assert stage.sight("spot") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.failed_loops() == []


def test_the_price_expander_knows_what_a_node_costs(make_stage: MakeStage) -> None:
    """F02, F30. The same machine on demand and spot: each generation asks in its fields and gets the same price."""
    stage = make_stage(gpu(), spot(), flags=Flags(expander="price"))
    (pod,) = stage.cluster.submit("train", gpus=1)
    stage.until(40)
    assert stage.story() == ["30 ScaledUpGroup spot 1"]
    provider, now = stage.autoscaler.provider, stage.clock.now()
    on_demand, spotted = (group.template() for group in provider.node_groups())
    assert node_price(provider, on_demand, now, now + minutes(60)) == pytest.approx(2.29)
    assert node_price(provider, spotted, now, now + minutes(60)) == pytest.approx(0.8015)
    assert node_price(provider, spotted, now, now + minutes(30)) == pytest.approx(0.8015 / 2)
    assert 0 < pod_price(provider, pod, now, now + minutes(60)) <= 0.8015


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_the_order_of_contracts_is_the_operators(make_stage: MakeStage) -> None:
    """F31. Spot is dearer than on demand today; "spot, then on demand" still orders spot, and the books say so."""
    stage = make_stage(gpu(contracts=(Contract.SPOT, Contract.ON_DEMAND)))
    stage.world.state.market.spot_ratio[H100] = 1.2
    stage.pass_time(310)
    stage.cluster.submit("train", gpus=1)
    stage.until(360)
    (instance,) = stage.process.books.members("gpu").listed
    assert instance.contract is Contract.SPOT
    assert instance.price_per_hour == Decimal("2.748")
