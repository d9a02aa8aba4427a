"""Which class stands behind a type name and schema version in the log, and how old payloads are lifted to today's."""

import json
from collections.abc import Callable, Mapping
from typing import Any, get_args

from app.domain.cloud import AnyCloudEvent
from app.domain.cluster.events import AnyClusterEvent
from app.domain.envelope import Event
from app.domain.instance.events import AnyInstanceEvent
from app.domain.nodegroup.events import AnyNodeGroupEvent
from app.domain.service import AnyServiceEvent

Payload = dict[str, Any]
Upcaster = Callable[[Payload], Payload]

EVENT_TYPES: Mapping[str, type[Event]] = {
    event_type.type: event_type
    for union in (AnyNodeGroupEvent, AnyInstanceEvent, AnyCloudEvent, AnyClusterEvent, AnyServiceEvent)
    for event_type in get_args(union)
}
"""Every event there is, by its name in the log."""

UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}
"""(type, schema version) → the function that lifts a payload of that version to the next one."""


class UnknownEvent(Exception):
    """The log holds an event that this version of the program does not know. It is never skipped."""


def decode(type_name: str, schema_version: int, data: str) -> Event:
    """The event behind a row of the log.

    Raises:
        UnknownEvent: the type is not known, or its schema version is newer than ours.
    """
    event_type = EVENT_TYPES.get(type_name)
    if event_type is None or schema_version > event_type.schema_version:
        raise UnknownEvent(f"{type_name} version {schema_version} was written by a newer version of this program")
    if schema_version == event_type.schema_version:
        return event_type.model_validate_json(data)
    payload: Payload = json.loads(data)
    for version in range(schema_version, event_type.schema_version):
        payload = UPCASTERS[type_name, version](payload)
    return event_type.model_validate(payload)
