"""A cloud that rents machines and machines of our own, as one: each call goes where its machine is."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from app.cloud.port import Balance, Cloud, Deletion, DeletionAnswer, DeletionResult, StoredScript
from app.cloud.webhook import WebhookCloud
from app.config.specs import type_name
from app.domain.ids import is_own
from app.domain.machine import Machine, Order, Volume
from app.domain.offering import Contract, InstanceType
from app.errors import CloudError, NotSent


class SeveralClouds:
    """`rented` is None where every machine is our own; then what only a cloud has is empty."""

    def __init__(self, rented: Cloud | None, own: WebhookCloud) -> None:
        self._rented = rented
        self._own = own

    @property
    def backend(self) -> str:
        """The cloud's, or `webhook`."""
        return "webhook" if self._rented is None else self._rented.backend

    def list_instances(self) -> Sequence[Machine]:
        """All of them; a cloud that cannot be listed hides our own too, for a part must not pass for the whole."""
        rented = () if self._rented is None else self._rented.list_instances()
        return (*rented, *self._own.list_instances())

    def get_instance(self, instance_id: str) -> Machine | None:
        """One machine. Without an account nobody can say that a rented one is gone."""
        if is_own(instance_id):
            return self._own.get_instance(instance_id)
        if self._rented is None:
            raise NotSent("there is no account to look for a rented machine with", code="no_account")
        return self._rented.get_instance(instance_id)

    def create_instance(self, order: Order) -> str:
        """Order it, or switch it on."""
        own = {type_name(group) for group in self._own.groups}
        if order.instance_type in own or self._rented is None:
            return self._own.create_instance(order)
        return self._rented.create_instance(order)

    def delete_instances(self, deletions: Sequence[Deletion]) -> Sequence[DeletionAnswer]:
        """Give back or switch off; one answer each, in the order asked.

        The rented ones first: they cost by the minute. If there are both, each side's failure is its own machines'.
        """
        own = [one for one in deletions if is_own(one.instance_id) or self._rented is None]
        rented = [one for one in deletions if one not in own]
        if self._rented is None or not rented:
            return self._own.delete_instances(own)
        if not own:
            return self._rented.delete_instances(rented)
        given = (*_answered(self._rented, rented), *_answered(self._own, own))
        answers = {answer.instance_id: answer for answer in given}
        return [answers[one.instance_id] for one in deletions]

    def instance_types(self) -> Sequence[InstanceType]:
        """The catalogue, with one type for each group of our own machines."""
        rented = () if self._rented is None else self._rented.instance_types()
        return (*rented, *self._own.instance_types())

    def availability(self, contract: Contract) -> Mapping[str, frozenset[str]]:
        """The cloud's."""
        return {} if self._rented is None else self._rented.availability(contract)

    def locations(self) -> Sequence[str]:
        """The cloud's."""
        return () if self._rented is None else self._rented.locations()

    def images(self) -> Sequence[str]:
        """The cloud's."""
        return () if self._rented is None else self._rented.images()

    def volumes(self) -> Sequence[Volume]:
        """The cloud's."""
        return () if self._rented is None else self._rented.volumes()

    def delete_volume(self, volume_id: str, *, permanent: bool) -> None:
        """At the cloud."""
        if self._rented is not None:
            self._rented.delete_volume(volume_id, permanent=permanent)

    def balance(self) -> Balance:
        """The cloud's; our own machines are paid for."""
        return Balance(amount=Decimal(0), currency="usd") if self._rented is None else self._rented.balance()

    def scripts(self) -> Sequence[StoredScript]:
        """The cloud's."""
        return () if self._rented is None else self._rented.scripts()

    def create_script(self, name: str, text: str) -> str:
        """At the cloud."""
        assert self._rented is not None, "a group of our own machines has no startup script"  # noqa: S101 - its spec
        return self._rented.create_script(name, text)

    def delete_script(self, script_id: str) -> None:
        """At the cloud."""
        if self._rented is not None:
            self._rented.delete_script(script_id)


def _answered(cloud: Cloud | WebhookCloud, deletions: Sequence[Deletion]) -> Sequence[DeletionAnswer]:
    """One answer each, also if the call failed as a whole."""
    try:
        return cloud.delete_instances(deletions)
    except CloudError as error:
        return [
            DeletionAnswer(
                instance_id=one.instance_id, result=DeletionResult.REFUSED, code=error.code, message=error.message
            )
            for one in deletions
        ]
