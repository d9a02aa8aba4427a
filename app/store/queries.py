"""Reading the audit views and projection tables of a database, also while a server writes it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import text

from app.store.reading import reading

Rows = Sequence[dict[str, Any]]

_OPEN = "state NOT IN ('gone', 'lost', 'cancelled')"


def events(database: Path, *, limit: int, after: int = 0, node_group: str | None, instance: str | None) -> Rows:
    """The newest `limit` events behind a position, oldest first, of a group or an instance if one is named.

    Raises:
        StoreUnavailable: there is no database, or it cannot be read.
    """
    wanted = text(
        """
        SELECT * FROM (
          SELECT position, recorded_at, actor, what, node_group, instance, type, correlation_id, data FROM v_events
          WHERE position > :after
            AND (:node_group IS NULL OR node_group = :node_group) AND (:instance IS NULL OR instance = :instance)
          ORDER BY position DESC LIMIT :limit
        ) ORDER BY position
        """
    )
    values = {"after": after, "limit": limit, "node_group": node_group, "instance": instance}
    with reading(database) as connection:
        return [dict(row) for row in connection.execute(wanted, values).mappings()]


def instances(database: Path, *, node_group: str | None, ended: bool) -> Rows:
    """Instances with what they cost so far, oldest wish first; without those that have ended unless `ended`.

    Raises:
        StoreUnavailable: there is no database, or it cannot be read.
    """
    wanted = text(
        f"""
        SELECT instance, node_group, state, instance_id, instance_type, location, contract, requested_at, created_at,
          ended_at, reason, price_per_hour, currency, hours, cost, error_message
        FROM v_instance_history
        WHERE (:ended OR {_OPEN}) AND (:node_group IS NULL OR node_group = :node_group)
        ORDER BY ordinal
        """  # noqa: S608 - put together from constants
    )
    with reading(database) as connection:
        return [dict(row) for row in connection.execute(wanted, {"ended": ended, "node_group": node_group}).mappings()]


def groups(database: Path) -> Rows:
    """Node groups with target size, instances by state and what they cost an hour.

    Raises:
        StoreUnavailable: there is no database, or it cannot be read.
    """
    wanted = text(
        """
        SELECT g.name AS node_group, json_extract(g.spec, '$.instance_type') AS instance_type,
          json_extract(g.spec, '$.min_size') AS min_size, json_extract(g.spec, '$.max_size') AS max_size, g.retired,
          coalesce(sum(i.state NOT IN ('gone', 'lost', 'cancelled', 'deleting')), 0) AS target_size,
          coalesce(sum(i.state IN ('requested', 'submitting', 'provisioning')), 0) AS creating,
          coalesce(sum(i.state = 'running'), 0) AS running,
          coalesce(sum(i.state = 'failed'), 0) AS failed,
          coalesce(sum(i.state = 'deleting'), 0) AS deleting,
          round(coalesce(sum((i.instance_id IS NOT NULL AND i.ended_at IS NULL) * i.price_per_hour), 0), 4)
            AS cost_per_hour
        FROM node_groups g LEFT JOIN instances i ON i.node_group = g.name AND i.ended_at IS NULL
        GROUP BY g.name ORDER BY g.ordinal
        """
    )
    with reading(database) as connection:
        return [dict(row) for row in connection.execute(wanted).mappings()]


def overview(database: Path) -> dict[str, Any]:
    """The installation, the cloud and the log in one row.

    Raises:
        StoreUnavailable: there is no database, or it cannot be read.
    """
    wanted = text(
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
    with reading(database) as connection:
        return dict(connection.execute(wanted).mappings().one())
