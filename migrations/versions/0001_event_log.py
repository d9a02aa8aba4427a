"""The event log, append-only by triggers, and its projections."""

from collections.abc import Sequence

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


def _columns(required: str, optional: str = "", integers: str = "") -> list[sa.Column[object]]:
    columns: list[sa.Column[object]] = [sa.Column(name, sa.Text, nullable=False) for name in required.split()]
    columns += [sa.Column(name, sa.Text, nullable=True) for name in optional.split()]
    columns += [sa.Column(name, sa.Integer, nullable=False) for name in integers.split()]
    return columns


def _projection(name: str, key: str, *columns: sa.Column[object]) -> None:
    op.create_table(
        name,
        sa.Column(key, sa.Text, nullable=False),
        *columns,
        sa.PrimaryKeyConstraint(key, name=op.f(f"pk_{name}")),
        sqlite_strict=True,
    )


def upgrade() -> None:
    """Create everything."""
    op.create_table(
        "events",
        sa.Column("position", sa.Integer, primary_key=True),
        *_columns("stream"),
        *_columns("", integers="version"),
        *_columns("type"),
        *_columns("", integers="schema"),
        *_columns("recorded_at actor correlation_id data hash"),
        sa.UniqueConstraint("stream", "version", name=op.f("uq_events_stream_version")),
        # `f` says that the names are final, or the naming convention would prefix them once more.
        sa.CheckConstraint("version >= 1", name=op.f("ck_events_version")),
        sa.CheckConstraint("json_valid(data)", name=op.f("ck_events_data")),
        sqlite_strict=True,
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_type_position", "events", ["type", "position"])
    op.create_index("ix_events_correlation_id", "events", ["correlation_id"])
    for trigger in _TRIGGERS:
        op.execute(trigger)
    _projection("projections", "name", *_columns("", integers="version position"))
    _projection("node_groups", "name", *_columns("spec", integers="ordinal retired version position"))
    _projection(
        "instances",
        "name",
        *_columns(
            "node_group state provider_id requested_at requested_by correlation_id currency closed_rungs volume_ids",
            "instance_type image location contract price_per_hour attempted_at unknown_since retry_at instance_id "
            "machine_status ip os_volume_id created_at running_at stopped_at failed_at error_code error_message "
            "delete_requested_at delete_requested_by delete_reason delete_code ended_at end_reason cancel_reason cost",
            "ordinal attempt delete_attempt provider_id_learned version position",
        ),
        sa.Column("error_class", sa.Integer, nullable=True),
    )
    op.create_index("ix_instances_instance_id", "instances", ["instance_id"])
    op.create_index("ix_instances_ended_at", "instances", ["ended_at"])
    _projection(
        "instance_types",
        "name",
        *_columns(
            "memory_gb gpu_memory_gb gpu_name model manufacturer currency supported_images",
            "storage_gb on_demand_price spot_price",
            "cpus gpus withdrawn position",
        ),
    )
    _projection("surplus_instances", "instance_id", *_columns("instance reason since", integers="position"))
    _projection("orphans", "instance_id", *_columns("reason", integers="position"))
    _projection(
        "cloud",
        "name",
        *_columns("trouble", "since first_reached_at", "version position"),
        sa.Column("reachable", sa.Integer, nullable=True),
    )
    _projection(
        "installation",
        "name",
        *_columns(
            "installation_id cluster_name backend configuration_sha256 claimed",
            "max_hourly_cost",
            "epoch version position",
        ),
    )


def downgrade() -> None:
    """There is nothing below the log."""
    raise RuntimeError("the first revision cannot be undone: it would delete the log")
