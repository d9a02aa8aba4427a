"""The event log, append-only by triggers, and its projections."""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0001"
down_revision: str | None = None
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_TRIGGERS = (
    """
    CREATE TRIGGER events_append_only_insert BEFORE INSERT ON events
    WHEN NEW.position IS NOT (SELECT coalesce(max(position), 0) + 1 FROM events)
      OR NEW.version IS NOT (SELECT coalesce(max(version), 0) + 1 FROM events WHERE stream = NEW.stream)
    BEGIN SELECT RAISE(ABORT, 'events are append-only: position and version must follow the last ones'); END
    """,
    """
    CREATE TRIGGER events_append_only_update BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are append-only: no update'); END
    """,
    """
    CREATE TRIGGER events_append_only_delete BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are append-only: no delete'); END
    """,
)


def _columns(words: str) -> Iterator[sa.Column[Any]]:
    """Columns from their shorthand: the name, `?` if it may be null, `#` if it is an integer and not text."""
    for word in words.split():
        yield sa.Column(word.rstrip("?#"), sa.Integer if "#" in word else sa.Text, nullable="?" in word)


def _projection(name: str, key: str, columns: str) -> None:
    op.create_table(
        name,
        *_columns(f"{key} {columns}"),
        sa.PrimaryKeyConstraint(key, name=op.f(f"pk_{name}")),
        sqlite_strict=True,
    )


def upgrade() -> None:
    """Create everything."""
    op.create_table(
        "events",
        sa.Column("position", sa.Integer, primary_key=True),
        *_columns("stream version# type schema# recorded_at actor correlation_id data hash"),
        # `f` says that the names are final, or the naming convention would prefix them once more.
        sa.UniqueConstraint("stream", "version", name=op.f("uq_events_stream_version")),
        sa.CheckConstraint("version >= 1", name=op.f("ck_events_version")),
        sa.CheckConstraint("json_valid(data)", name=op.f("ck_events_data")),
        sqlite_strict=True,
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_type_position", "events", ["type", "position"])
    op.create_index("ix_events_correlation_id", "events", ["correlation_id"])
    for trigger in _TRIGGERS:
        op.execute(trigger)
    _create_projections()


def _create_projections() -> None:
    _projection("projections", "name", "version# position#")
    _projection("node_groups", "name", "ordinal# retired# spec version# position#")
    _projection(
        "instances",
        "name",
        "node_group state provider_id ordinal# requested_at requested_by correlation_id instance_type? "
        "image? location? contract? price_per_hour? currency attempt# attempted_at? unknown_since? "
        "closed_rungs retry_at? instance_id? machine_status? ip? os_volume_id? volume_ids created_at? "
        "running_at? stopped_at? failed_at? error_class?# error_code? error_message? delete_requested_at? "
        "delete_requested_by? delete_reason? delete_attempt# delete_code? ended_at? end_reason? "
        "cancel_reason? cost? provider_id_learned# version# position#",
    )
    op.create_index("ix_instances_ended_at", "instances", ["ended_at"])
    op.create_index("ix_instances_instance_id", "instances", ["instance_id"])
    _projection(
        "instance_types",
        "name",
        "cpus# memory_gb gpus# gpu_memory_gb gpu_name model manufacturer storage_gb? on_demand_price? "
        "spot_price? currency supported_images withdrawn# position#",
    )
    _projection("surplus_instances", "instance_id", "instance reason since position#")
    _projection("orphans", "instance_id", "reason position#")
    _projection("cloud", "name", "reachable?# since? first_reached_at? trouble version# position#")
    _projection(
        "installation",
        "name",
        "installation_id cluster_name epoch# backend configuration_sha256 claimed max_hourly_cost? version# position#",
    )


def downgrade() -> None:
    """There is nothing below the log."""
    raise RuntimeError("the first revision cannot be undone: it would delete the log")
