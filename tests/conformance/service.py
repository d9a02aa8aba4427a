"""Whoever is asked, and the node groups a test may change there."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from .autoscaler import DELETING, Autoscaler
from .settings import names_of
from .until import until

ANY = "any"
"""A kind: no matter what the group is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """An externalgrpc provider; `own_group` is the group of somebody else's that we may change, None for our own."""

    address: str
    own_group: str | None = None

    @property
    def is_external(self) -> bool:
        """Somebody else runs it."""
        return self.own_group is not None


@dataclass(slots=True)
class Lender:
    """Lends node groups that are empty and empties them afterwards, without waiting where there is another."""

    service: Service
    caretaker: Autoscaler
    lent: list[str] = field(default_factory=list)

    def lease(self, kind: str = ANY) -> str:
        """The name of an empty group."""
        names = self._names(kind)
        patience_s = 600.0 if self.service.is_external else None
        name = until(f"a group of kind {kind} is empty", lambda: next(filter(self._is_free, names), ""), patience_s)
        self.lent.append(name)
        return name

    def _names(self, kind: str) -> tuple[str, ...]:
        if self.service.own_group is None:
            return names_of("gpu" if kind == ANY else kind)
        if kind != ANY or self.lent:
            pytest.skip("needs node groups of a kind that --address is not known to have")
        return (self.service.own_group,)

    def _is_free(self, name: str) -> bool:
        return name not in self.lent and not self.caretaker.instances(name)

    def take_back(self) -> None:
        """Have everything deleted that is still in the groups."""
        for name in self.lent:
            states = self.caretaker.states(name)
            nodes = [self.caretaker.fake(each) for each, state in states.items() if state != DELETING]
            if nodes:
                self.caretaker.delete(name, nodes)


Lease = Callable[..., str]
