"""`replace` of our own does what that of the standard library does."""

import dataclasses
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import pytest

from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.records import replace


@dataclass(frozen=True, kw_only=True)
class Box:
    """Something with a field that another value is computed from."""

    width: int
    height: int = 1

    @cached_property
    def area(self) -> int:
        """Computed once."""
        return self.width * self.height


@dataclass(frozen=True, slots=True)
class Slotted:
    """Not for us."""

    width: int


@dataclass(frozen=True)
class Checked:
    """Not for us either: it must not be made without its check."""

    width: int

    def __post_init__(self) -> None:
        """Refuse."""
        if self.width < 0:
            raise ValueError(self.width)


def test_the_original_stays_and_what_was_computed_is_computed_anew() -> None:
    """A copied cache would be a lie about the new fields."""
    box = Box(width=2, height=3)
    assert box.area == 6
    wide = replace(box, width=10)
    assert (wide, wide.area) == (Box(width=10, height=3), 30)
    assert (box, box.area) == (Box(width=2, height=3), 6)
    assert replace(box) == box


def test_the_copy_is_frozen_and_hashes_alike() -> None:
    """It is as good as one that was constructed."""
    wide = replace(Box(width=2), width=10)
    assert hash(wide) == hash(Box(width=10))
    with pytest.raises(dataclasses.FrozenInstanceError):
        wide.width = 3  # type: ignore[misc] # that is the point


def test_an_instance_changes_as_by_the_standard_library() -> None:
    """The class with the most fields."""
    at = datetime(2026, 1, 5, tzinfo=UTC)
    one = Instance(
        name="gpu-aaaaaaaa",
        node_group="gpu",
        state=InstanceState.REQUESTED,
        provider_id="verda://gpu-aaaaaaaa",
        ordinal=3,
        requested_at=at,
        requested_by="cluster-autoscaler",
        correlation_id="c",
    )
    changes = {"state": InstanceState.RUNNING, "ip": "10.0.0.7", "running_at": at}
    assert replace(one, **changes) == dataclasses.replace(one, **changes)  # type: ignore[arg-type] # fields of many types


def test_unknown_fields_and_unfit_classes_are_refused() -> None:
    """What would be forgotten silently by a copy."""
    with pytest.raises(TypeError, match="Box has no field depth"):
        replace(Box(width=1), depth=2)  # type: ignore[call-arg] # that is the point
    for unfit in (Slotted(1), Checked(1)):
        with pytest.raises(TypeError, match="is not a plain dataclass"):
            replace(unfit, width=2)
