"""From the configuration to the switches of our own machines, and from the books to which of them are on."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from app.cloud.webhook import Placed, PowerSwitch, WebhookGroup, instance_type
from app.config import groups
from app.config.model import Config
from app.config.specs import by_size
from app.domain.books import Books
from app.domain.ids import is_own, place_of
from app.domain.quantity import parse_quantity

_GIB = 2**30


def switches(config: Config) -> Mapping[str, WebhookGroup]:
    """The groups of our own machines."""
    return {
        name: _group(name, group)
        for name, group in config.node_groups.items()
        if isinstance(group, groups.WebhookGroup)
    }


def with_former(now: Mapping[str, WebhookGroup], before: Mapping[str, WebhookGroup]) -> Mapping[str, WebhookGroup]:
    """The groups of now, and what is in them no more: it may be on, or about to be, and is to be switched off then."""
    former = {
        name: WebhookGroup(kind=group.kind, switches={**before[name].switches, **group.switches})
        for name, group in now.items()
        if name in before
    }
    return {**before, **now, **former}


def _group(name: str, group: groups.WebhookGroup) -> WebhookGroup:
    smallest = by_size(group)[0]
    memory = parse_quantity(smallest.resources.get("memory", "0"))
    return WebhookGroup(
        kind=instance_type(
            name,
            cpus=int(parse_quantity(smallest.resources.get("cpu", "0"))),
            memory_gb=Decimal(memory) / _GIB,
            gpus=smallest.gpu_count,
        ),
        switches={
            machine.name: PowerSwitch(
                name=machine.name,
                scale_up_endpoint=machine.scale_up_endpoint,
                scale_down_endpoint=machine.scale_down_endpoint,
                status_endpoint=machine.status_endpoint,
                token_file=machine.token_file,
            )
            for machine in group.machines
        },
    )


def placed(books: Books) -> Sequence[Placed]:
    """Our own machines that are on by the books, may be on, or are on their way down, whatever their groups are now."""
    had = [
        Placed(
            instance_id=instance.instance_id,
            instance=instance.name,
            node_group=group,
            machine=machine,
            created_at=instance.created_at,
        )
        for instance in books.listed_instances()
        if instance.instance_id is not None and is_own(instance.instance_id)
        for group, machine in (place_of(instance.instance_id),)
    ]
    left = [
        Placed(
            instance_id=surplus.instance_id,
            instance=surplus.instance,
            node_group=node_group,
            machine=machine,
            created_at=surplus.since,
        )
        for surplus in books.cloud.surplus.values()
        for node_group, machine in (place_of(surplus.instance_id),)
        if machine
    ]
    return [*had, *left]
