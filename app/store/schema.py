"""The tables. Migrations create them; these definitions are what the code speaks to them with.

`events` is the log and the only truth. The others are projections of it: disposable, one row per aggregate, each with
the log position that last touched it. Times are ISO 8601 in UTC, money is decimal text, lists and settings are JSON.
"""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

SCHEMA_REVISION = "0013"
"""The newest migration; the same as Alembic's head."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _maybe_text(name: str) -> Column[str | None]:
    return Column(name, Text, nullable=True)


def _integer(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


events = Table(
    "events",
    metadata,
    Column("position", Integer, primary_key=True),
    _text("stream"),
    _integer("version"),
    _text("type"),
    _integer("schema"),
    _text("recorded_at"),
    _text("actor"),
    _text("correlation_id"),
    _text("data"),
    _text("hash"),
    UniqueConstraint("stream", "version"),
    CheckConstraint("version >= 1", name="version"),
    CheckConstraint("json_valid(data)", name="data"),
    Index(None, "type", "position"),
    Index(None, "correlation_id"),
    sqlite_strict=True,
    sqlite_autoincrement=True,
)

projections = Table(
    "projections",
    metadata,
    Column("name", Text, primary_key=True),
    _integer("version"),
    _integer("position"),
    sqlite_strict=True,
)

node_groups = Table(
    "node_groups",
    metadata,
    Column("name", Text, primary_key=True),
    _integer("ordinal"),
    _integer("retired"),
    _text("spec"),
    _text("rests"),
    _integer("version"),
    _integer("position"),
    _maybe_text("paused_at"),
    _maybe_text("paused_by"),
    _maybe_text("pause_reason"),
    Column("joining", Text, nullable=False, server_default="{}"),
    sqlite_strict=True,
)

instances = Table(
    "instances",
    metadata,
    Column("name", Text, primary_key=True),
    _text("node_group"),
    _text("state"),
    _text("provider_id"),
    _integer("ordinal"),
    _text("requested_at"),
    _text("requested_by"),
    _text("correlation_id"),
    _maybe_text("instance_type"),
    _maybe_text("image"),
    _maybe_text("location"),
    _maybe_text("contract"),
    _maybe_text("price_per_hour"),
    _text("currency"),
    _integer("attempt"),
    _maybe_text("attempted_at"),
    _maybe_text("unknown_since"),
    _text("closed_rungs"),
    _maybe_text("retry_at"),
    _maybe_text("instance_id"),
    _maybe_text("machine_status"),
    _maybe_text("ip"),
    _maybe_text("os_volume_id"),
    _text("volume_ids"),
    _maybe_text("created_at"),
    _maybe_text("running_at"),
    _maybe_text("stopped_at"),
    _maybe_text("failed_at"),
    Column("error_class", Integer, nullable=True),
    _maybe_text("error_code"),
    _maybe_text("error_message"),
    _maybe_text("delete_requested_at"),
    _maybe_text("delete_requested_by"),
    _maybe_text("delete_reason"),
    _integer("delete_attempt"),
    _maybe_text("delete_code"),
    _maybe_text("ended_at"),
    _maybe_text("end_reason"),
    _maybe_text("cancel_reason"),
    _maybe_text("cost"),
    _integer("provider_id_learned"),
    _integer("version"),
    _integer("position"),
    Column("billed_before", Text, nullable=False, server_default="0"),
    _maybe_text("price_since"),
    _maybe_text("node_uid"),
    _maybe_text("node_registered_at"),
    _maybe_text("node_ready_at"),
    _maybe_text("node_problem"),
    _maybe_text("repaired_uid"),
    _maybe_text("script"),
    _maybe_text("script_token"),
    Column("script_fetches", Integer, nullable=False, server_default="0"),
    _maybe_text("status_since"),
    _maybe_text("node_measured_at"),
    _maybe_text("prepared_uid"),
    _maybe_text("script_fetched_at"),
    _maybe_text("script_source"),
    Column("node_preparing", Text, nullable=False, server_default="[]"),
    Column("node_prepared", Text, nullable=False, server_default="[]"),
    Column("earlier_ids", Text, nullable=False, server_default="[]"),
    Index(None, "instance_id"),
    Index(None, "ended_at"),
    sqlite_strict=True,
)

instance_types = Table(
    "instance_types",
    metadata,
    Column("name", Text, primary_key=True),
    _integer("cpus"),
    _text("memory_gb"),
    _integer("gpus"),
    _text("gpu_memory_gb"),
    _text("gpu_name"),
    _text("model"),
    _text("manufacturer"),
    _maybe_text("storage_gb"),
    _maybe_text("on_demand_price"),
    _maybe_text("spot_price"),
    _text("currency"),
    _text("supported_images"),
    _integer("withdrawn"),
    _integer("position"),
    sqlite_strict=True,
)

surplus_instances = Table(
    "surplus_instances",
    metadata,
    Column("instance_id", Text, primary_key=True),
    _text("instance"),
    _text("reason"),
    _text("since"),
    _integer("position"),
    sqlite_strict=True,
)

orphans = Table(
    "orphans",
    metadata,
    Column("instance_id", Text, primary_key=True),
    _text("hostname"),
    _text("installation"),
    _text("node_group"),
    _maybe_text("price_per_hour"),
    _text("reason"),
    _text("since"),
    _integer("position"),
    sqlite_strict=True,
)

startup_scripts = Table(
    "startup_scripts",
    metadata,
    Column("name", Text, primary_key=True),
    _text("digest"),
    _maybe_text("script_id"),
    _integer("deleting"),
    _text("since"),
    _integer("position"),
    sqlite_strict=True,
)

cloud = Table(
    "cloud",
    metadata,
    Column("name", Text, primary_key=True),
    Column("reachable", Integer, nullable=True),
    _maybe_text("since"),
    _maybe_text("first_reached_at"),
    _text("trouble"),
    _integer("version"),
    _integer("position"),
    _maybe_text("account"),
    _maybe_text("balance"),
    Column("balance_currency", Text, nullable=False, server_default=""),
    sqlite_strict=True,
)

cluster = Table(
    "cluster",
    metadata,
    Column("name", Text, primary_key=True),
    _integer("version"),
    _integer("position"),
    sqlite_strict=True,
)

node_removals = Table(
    "node_removals",
    metadata,
    Column("uid", Text, primary_key=True),
    _text("node"),
    _text("instance"),
    _text("node_group"),
    _text("end"),
    _text("silent_since"),
    _text("attempted_at"),
    _integer("position"),
    sqlite_strict=True,
)

learned_templates = Table(
    "learned_templates",
    metadata,
    Column("kind", Text, primary_key=True),
    _text("node"),
    _text("figures"),
    _text("learned_at"),
    _integer("position"),
    sqlite_strict=True,
)

join_tokens = Table(
    "join_tokens",
    metadata,
    Column("token_id", Text, primary_key=True),
    _text("instance"),
    _text("node_group"),
    _integer("attempt"),
    _text("expires_at"),
    _text("attempted_at"),
    _maybe_text("minted_at"),
    _integer("position"),
    sqlite_strict=True,
)

doubtful_tokens = Table(
    "doubtful_tokens",
    metadata,
    Column("token_id", Text, primary_key=True),
    _maybe_text("expires_at"),
    _text("message"),
    _integer("position"),
    sqlite_strict=True,
)

installation = Table(
    "installation",
    metadata,
    Column("name", Text, primary_key=True),
    _text("installation_id"),
    _text("cluster_name"),
    _integer("epoch"),
    _text("backend"),
    _text("configuration_sha256"),
    _text("claims"),
    _maybe_text("max_hourly_cost"),
    _maybe_text("reverted_at"),
    _integer("version"),
    _integer("position"),
    Column("balance_runway_s", Integer, nullable=True),
    sqlite_strict=True,
)

PROJECTED = (
    node_groups,
    instances,
    instance_types,
    surplus_instances,
    orphans,
    startup_scripts,
    cloud,
    cluster,
    node_removals,
    learned_templates,
    join_tokens,
    doubtful_tokens,
    installation,
)
"""Every table that the fold of the log fills, and that can be emptied and filled again."""
