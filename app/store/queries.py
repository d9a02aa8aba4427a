"""Reading the audit views and projection tables of a database, also while a server writes it.

Every question takes the connection of `reading`, so that all answers to one command are of one moment.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, text

Rows = Sequence[dict[str, Any]]

_OPEN = "state NOT IN ('gone', 'lost', 'cancelled')"
EXPORTED = (
    "events",
    "instance_history",
    "target_size_history",
    "billing",
    "costs_daily",
    "waste",
    "failures",
    "api_outages",
)
"""What can be taken out as a whole: the log itself, and the audit views of these names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which events: None leaves a question open. `type` may be the beginning of a type; times are as stored."""

    node_group: str | None = None
    instance: str | None = None
    type: str | None = None
    actor: str | None = None
    correlation_id: str | None = None
    since: str | None = None
    until: str | None = None


ALL = Wanted()


def events(connection: Connection, wanted: Wanted = ALL, *, limit: int, after: int = 0) -> Rows:
    """The newest `limit` of the wanted events behind a position, oldest first."""
    query = text(
        """
        SELECT * FROM (
          SELECT position, recorded_at, actor, what, node_group, instance, type, correlation_id, data FROM v_events
          WHERE position > :after
            AND (:node_group IS NULL OR node_group = :node_group)
            AND (:instance IS NULL OR instance = :instance)
            AND (:type IS NULL OR substr(type, 1, length(:type)) = :type)
            AND (:actor IS NULL OR actor = :actor)
            AND (:correlation_id IS NULL OR correlation_id = :correlation_id)
            AND (:since IS NULL OR recorded_at >= :since) AND (:until IS NULL OR recorded_at < :until)
          ORDER BY position DESC LIMIT :limit
        ) ORDER BY position
        """
    )
    return _rows(connection, query, {**asdict(wanted), "after": after, "limit": limit})


def instances(connection: Connection, *, node_group: str | None = None, ended: bool = True) -> Rows:
    """Instances with what they cost so far, oldest wish first; without those that have ended unless `ended`."""
    query = text(
        f"""
        SELECT instance, node_group, state, instance_id, instance_type, location, contract, requested_at, created_at,
          ended_at, reason, price_per_hour, currency, hours, cost, error_message
        FROM v_instance_history
        WHERE (:ended OR {_OPEN}) AND (:node_group IS NULL OR node_group = :node_group)
        ORDER BY ordinal
        """  # noqa: S608 - put together from constants
    )
    return _rows(connection, query, {"ended": ended, "node_group": node_group})


def groups(connection: Connection) -> Rows:
    """Node groups with target size, instances by state, what they cost an hour, and the node their template follows.

    `learned` is what that node leaves to pods, None while the template is as it is computed.
    """
    query = text(
        """
        SELECT g.name AS node_group, json_extract(g.spec, '$.instance_type') AS instance_type,
          iif(g.retired, 0, json_extract(g.spec, '$.min_size')) AS min_size,
          iif(g.retired, coalesce(sum(i.state <> 'deleting'), 0), json_extract(g.spec, '$.max_size')) AS max_size,
          g.retired, g.pause_reason AS paused,
          coalesce(sum(i.state <> 'deleting'), 0) AS target_size,
          coalesce(sum(i.state IN ('requested', 'submitting', 'provisioning')), 0) AS creating,
          coalesce(sum(i.state = 'running'), 0) AS running,
          coalesce(sum(i.state = 'stopped'), 0) AS stopped,
          coalesce(sum(i.state = 'failed'), 0) AS failed,
          coalesce(sum(i.state = 'deleting'), 0) AS deleting,
          round(coalesce(sum((i.instance_id IS NOT NULL AND i.ended_at IS NULL) * i.price_per_hour), 0), 4)
            AS cost_per_hour
        FROM node_groups g LEFT JOIN instances i ON i.node_group = g.name AND i.ended_at IS NULL
        GROUP BY g.name ORDER BY g.ordinal
        """
    )
    learned = {row["kind"]: row for row in _rows(connection, text("SELECT * FROM learned_templates"), {})}
    taught = _taught(connection, learned) if learned else {}
    return [{**row, **_template(taught.get(row["node_group"]))} for row in _rows(connection, query, {})]


def _taught(connection: Connection, learned: Mapping[str, dict[str, Any]]) -> Mapping[str, dict[str, Any] | None]:
    """Node group → what real nodes taught about it."""
    from app.domain.cluster.learning import kind_of  # noqa: PLC0415 - the domain is loaded for those who have learned
    from app.domain.nodegroup.spec import NodeGroupSpec  # noqa: PLC0415 - likewise

    specs = connection.execute(text("SELECT name, spec FROM node_groups")).all()
    return {name: learned.get(kind_of(NodeGroupSpec.model_validate_json(spec))) for name, spec in specs}


def _template(learned: Mapping[str, Any] | None) -> dict[str, Any]:
    if learned is None:
        return {"template_from": None, "learned": None}
    return {"template_from": learned["node"], "learned": json.loads(learned["figures"])["allocatable"]}


def overview(connection: Connection) -> dict[str, Any]:
    """The installation, the cloud and the log in one row."""
    query = text(
        """
        SELECT (SELECT installation_id FROM installation) AS installation, (SELECT cluster_name FROM installation)
            AS cluster, (SELECT backend FROM installation) AS backend, (SELECT epoch FROM installation) AS epoch,
          (SELECT reachable FROM cloud) AS cloud_reachable, (SELECT since FROM cloud) AS cloud_since,
          (SELECT trouble FROM cloud) AS cloud_trouble,
          (SELECT count(*) FROM surplus_instances) AS surplus, (SELECT count(*) FROM orphans) AS orphans,
          (SELECT max(position) FROM events) AS position,
          (SELECT recorded_at FROM events ORDER BY position DESC LIMIT 1) AS last_event_at
        """
    )
    return _rows(connection, query, {})[0]


def instance_named(connection: Connection, key: str) -> str | None:
    """The name of the newest instance with this name, instance id or provider id, None if there is none."""
    query = text("SELECT name FROM instances WHERE :key IN (name, instance_id, provider_id) ORDER BY ordinal DESC")
    return connection.execute(query, {"key": key}).scalar()


def groups_ever(connection: Connection) -> Sequence[str]:
    """Every node group that there is, or that had an instance."""
    query = text("SELECT name FROM node_groups UNION SELECT node_group FROM instances ORDER BY 1")
    return list(connection.execute(query).scalars())


def names(connection: Connection, table: str, beginning: str) -> list[str]:
    """The names that begin so, of the projection `node_groups` or `instances`, the newest first."""
    query = text(
        f"SELECT name FROM {table} WHERE substr(name, 1, length(:beginning)) = :beginning "  # noqa: S608 - our own tables
        "ORDER BY ordinal DESC LIMIT 100"
    )
    return list(connection.execute(query, {"beginning": beginning}).scalars())


def billing(connection: Connection) -> Rows:
    """Every period of a machine at one price."""
    return _rows(connection, text("SELECT * FROM v_billing ORDER BY since, instance"), {})


def waste(connection: Connection) -> Rows:
    """Every period in which a machine was paid for and of no use, and why."""
    return _rows(connection, text("SELECT * FROM v_waste ORDER BY since, instance"), {})


def size_changes(connection: Connection, since: str) -> Rows:
    """Changes of target sizes since a time, oldest first."""
    query = text(
        """
        SELECT recorded_at, node_group, target_size, change FROM v_target_size_history
        WHERE recorded_at >= :since ORDER BY position
        """
    )
    return _rows(connection, query, {"since": since})


def daily_costs(connection: Connection, since: str) -> Rows:
    """What each group's machines cost on each day from one on."""
    query = text(
        """
        SELECT day, node_group, printf('%.6f', sum(cost)) AS cost, currency FROM v_costs_daily
        WHERE day >= :since GROUP BY day, node_group, currency ORDER BY day, node_group
        """
    )
    return _rows(connection, query, {"since": since})


def exported(connection: Connection, what: str) -> Iterator[dict[str, Any]]:
    """All rows of one of `EXPORTED`, the log with its hashes."""
    source = what if what == "events" else f"v_{what}"
    for row in connection.execute(text(f"SELECT * FROM {source}")).mappings():  # noqa: S608 - one of our own names
        yield dict(row)


def _rows(connection: Connection, query: Any, values: Mapping[str, object]) -> Rows:
    return [dict(row) for row in connection.execute(query, values).mappings()]
