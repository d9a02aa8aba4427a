from dataclasses import replace
from decimal import Decimal

from rpds import HashTrieMap

from app.clock import FakeClock
from app.domain.books import Books
from app.domain.cloud import CloudView
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.nodegroup.state import NodeGroup
from app.domain.offering import InstanceType
from app.rpc.answers import Answers
from app.rpc.gen import externalgrpc_pb2 as pb

KIND = InstanceType(
    name="1A100.22V",
    cpus=22,
    memory_gb=Decimal(120),
    gpus=1,
    gpu_memory_gb=Decimal(80),
    gpu_name="A100 SXM4 80GB",
    model="A100 80GB",
    manufacturer="NVIDIA",
    storage_gb=None,
    on_demand_price=Decimal("1.29"),
    spot_price=None,
    currency="usd",
)
SPEC = NodeGroupSpec(
    name="gpu", min_size=0, max_size=4, instance_type=KIND.name, image="ubuntu-24.04", locations=("FIN-01",)
)
GPU = NodeGroup(name="gpu", spec=SPEC, ordinal=1)


def selling(kind: InstanceType) -> Books:
    """Books with one group, whose instance type the catalogue has."""
    return replace(Books().with_group(GPU), cloud=CloudView(catalogue=HashTrieMap({kind.name: kind})))


def costing(price: Decimal) -> InstanceType:
    """The same machine at another price."""
    return KIND.model_copy(update={"on_demand_price": price})


def test_the_same_answer_is_not_built_twice() -> None:
    """The autoscaler asks for templates every ten seconds; nothing has changed most of the time."""
    answers, books = Answers(FakeClock()), selling(KIND)
    first = answers.template_response(GPU, books)
    assert answers.template_response(GPU, replace(books, position=7)) is first
    assert answers.template(GPU, books) is answers.template(GPU, books)


def test_what_goes_over_the_wire_is_made_once() -> None:
    """Serialized, and the same object until something of the group changes."""
    answers, books = Answers(FakeClock()), selling(KIND)
    first = answers.groups(books)
    assert [group.id for group in pb.NodeGroupsResponse.FromString(first.data).nodeGroups] == ["gpu"]
    assert answers.groups(replace(books, position=7)) is first
    own = answers.group("gpu", books)
    assert pb.NodeGroupForNodeResponse.FromString(own.data).nodeGroup.maxSize == SPEC.max_size
    assert answers.group("gpu", replace(books, position=7)) is own
    larger = replace(GPU, spec=SPEC.model_copy(update={"max_size": 99}))
    grown = books.with_group(larger)
    assert pb.NodeGroupForNodeResponse.FromString(answers.group("gpu", grown).data).nodeGroup.maxSize == 99
    assert [group.maxSize for group in pb.NodeGroupsResponse.FromString(answers.groups(grown).data).nodeGroups] == [99]


def test_groups_may_come_and_go() -> None:
    """A configuration that is read again, or a type that the catalogue gets: from none to two and back."""
    answers, kinds = Answers(FakeClock()), CloudView(catalogue=HashTrieMap({KIND.name: KIND}))
    nothing = replace(Books(), cloud=kinds)
    one = nothing.with_group(GPU)
    two = one.with_group(replace(GPU, name="more", spec=SPEC.model_copy(update={"name": "more"}), ordinal=2))
    retired = one.with_group(replace(GPU, retired=True))
    for books, names in ((nothing, []), (one, ["gpu"]), (two, ["gpu", "more"]), (one, ["gpu"]), (retired, [])) * 2:
        told = pb.NodeGroupsResponse.FromString(answers.groups(books).data)
        assert [group.id for group in told.nodeGroups] == names


def test_another_machine_or_another_group_is_another_answer() -> None:
    """What an answer was made of decides whether it is still right."""
    answers = Answers(FakeClock())
    first = answers.template_response(GPU, selling(KIND))
    larger = KIND.model_copy(update={"cpus": 44})
    second = answers.template_response(GPU, selling(larger))
    labelled = replace(GPU, spec=SPEC.model_copy(update={"labels": {"example.com/pool": "a"}}))
    assert second != first
    assert answers.template_response(labelled, selling(larger)) != second


def test_answers_that_are_out_of_date_are_forgotten() -> None:
    """Prices move for ever, and each change is another entry of the catalogue."""
    answers = Answers(FakeClock())
    for cents in range(100):
        answers.template_response(GPU, selling(costing(Decimal(cents))))
    assert answers.kept == 2
