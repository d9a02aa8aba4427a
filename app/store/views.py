"""The audit views: what people query with plain `sqlite3`. They are code, not data: made anew when they change."""

import re

from sqlalchemy import Connection, text

from app.domain.registry import EVENT_TYPES
from app.store.cost_views import COST_VIEWS

_FIELD = re.compile(r"\{(\w+)\}")


def _sentence(words: str) -> str:
    """SQL that puts an event's payload into its sentence: `{field}` becomes that field, `-` where it is null."""
    parts: list[str] = []
    end = 0
    for found in _FIELD.finditer(words):
        parts.append(_literal(words[end : found.start()]))
        parts.append(f"coalesce(json_extract(data, '$.{found.group(1)}'), '-')")
        end = found.end()
    parts.append(_literal(words[end:]))
    return " || ".join(part for part in parts if part != "''")


def _literal(words: str) -> str:
    return "'" + words.replace("'", "''") + "'"


_CASES = "\n".join(
    f"      WHEN {_literal(name)} THEN {_sentence(event_type.words)}"
    for name, event_type in sorted(EVENT_TYPES.items())
)

# Which events bring an instance into the target size and which take it out; an instance can come back when adopted.
_IN = "'instance.requested', 'instance.adopted'"
_OUT = "'instance.delete-requested', 'instance.cancelled', 'instance.lost'"

# No input of anybody's reaches these statements: they are put together from constants of this program.
VIEWS = {
    "v_events": f"""
    SELECT position, recorded_at, actor, stream,
      CASE type
{_CASES}
      ELSE type END AS what,
      json_extract(data, '$.node_group') AS node_group,
      json_extract(data, '$.instance') AS instance,
      type, correlation_id, data
    FROM events
    """,
    "v_target_size_history": f"""
    SELECT position, recorded_at, node_group,
      sum(change) OVER (PARTITION BY node_group ORDER BY position) AS target_size, change, actor, type, instance
    FROM (
      SELECT position, recorded_at, json_extract(data, '$.node_group') AS node_group, actor, type,
        json_extract(data, '$.instance') AS instance,
        counted - lag(counted, 1, 0) OVER (PARTITION BY stream ORDER BY version) AS change
      FROM (SELECT *, type IN ({_IN}) AS counted FROM events WHERE type IN ({_IN}, {_OUT}))
    )
    WHERE change <> 0
    """,
    "v_open_instances": """
    SELECT name AS instance, node_group, state, instance_id, instance_type, location, contract,
      requested_at, created_at, running_at, machine_status, price_per_hour, currency, error_code, error_message
    FROM instances WHERE state NOT IN ('gone', 'lost', 'cancelled')
    """,
    "v_failures": """
    SELECT recorded_at, json_extract(data, '$.node_group') AS node_group, json_extract(data, '$.instance') AS instance,
      json_extract(data, '$.error_class') AS error_class,
      coalesce(json_extract(data, '$.code'), json_extract(data, '$.end')) AS code,
      json_extract(data, '$.message') AS message, type, position
    FROM events WHERE type IN ('instance.create-failed', 'instance.create-refused', 'instance.lost')
    """,
    "v_api_outages": """
    SELECT began_at, ended_at, round((julianday(ended_at) - julianday(began_at)) * 86400, 3) AS seconds,
      json_extract(data, '$.code') AS code, json_extract(data, '$.message') AS message, position
    FROM (
      SELECT recorded_at AS began_at, lead(recorded_at) OVER (ORDER BY position) AS ended_at, type, data, position
      FROM events WHERE type IN ('cloud.unreachable', 'cloud.reachable')
    )
    WHERE type = 'cloud.unreachable'
    """,
    **COST_VIEWS,
}
"""View name → its SELECT."""


def ensure_views(connection: Connection) -> None:
    """Create the views that are missing or differ from today's definition, and drop none of anybody else's."""
    rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'view'"))
    present = {row.name: row.sql for row in rows}
    for name, select in VIEWS.items():
        statement = f"CREATE VIEW {name} AS {select.strip()}"
        if present.get(name) == statement:
            continue
        connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")
        connection.exec_driver_sql(statement)
