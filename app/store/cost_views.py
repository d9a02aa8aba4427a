"""The views that count money, in text with six decimals, which is as exact as a `REAL` of these sizes.

The log's own word on an ended machine, `cost`, is a Decimal; these views agree with it to the last of the six digits.
"""

from app.domain.cloud import NEVER_PLACED

_NOW = "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')"


def _seconds(column: str) -> str:
    """SQL for a stored time as seconds since 1970. `julianday` would round to milliseconds."""
    return f"(strftime('%s', substr({column}, 1, 19)) + CAST('0.' || substr({column}, 21, 6) AS REAL))"


def _span(since: str, until: str) -> str:
    return f"max({_seconds(until)} - {_seconds(since)}, 0)"


_HOURS = f"{_span('since', 'until')} / 3600"
_COST = f"printf('%.6f', sum({_HOURS} * price_per_hour))"

_BILLED = "created_at IS NOT NULL"

# What Verda shows holds from the machine's creation until Verda shows another price; where it never showed one, the
# catalogue's at the time of the order. Only what was shown after the last order counts: an order refused late leaves
# prices of a machine that was never placed behind. Such machines are not billed and have no time of creation.
# CROSS JOIN keeps SQLite from looking every period up for every machine, which took a minute for 10,000 of them.
_BILLING = f"""
    WITH told AS (
      SELECT substr(stream, 10) AS instance, version AS turn, recorded_at,
        json_extract(data, '$.price_per_hour') AS price,
        sum(type = 'instance.create-attempted') OVER (PARTITION BY stream ORDER BY version) AS attempt,
        type = 'instance.state-observed' AS is_shown
      FROM events WHERE type IN ('instance.create-attempted', 'instance.state-observed')
    ),
    shown AS (
      SELECT instance, turn, recorded_at, price, lag(price) OVER (PARTITION BY instance ORDER BY turn) AS before
      FROM told JOIN instances ON name = instance AND instances.attempt = told.attempt
      WHERE is_shown AND price IS NOT NULL
    ),
    spans AS (
      SELECT name AS instance, node_group, contract, currency, price AS price_per_hour,
        CASE WHEN before IS NULL THEN created_at ELSE max(recorded_at, created_at) END AS since,
        lead(recorded_at, 1, coalesce(ended_at, {_NOW})) OVER (PARTITION BY name ORDER BY turn) AS until
      FROM shown CROSS JOIN instances ON name = instance WHERE before IS NOT price AND {_BILLED}
      UNION ALL
      SELECT name, node_group, contract, currency, price_per_hour, created_at, coalesce(ended_at, {_NOW})
      FROM instances WHERE name NOT IN (SELECT instance FROM shown) AND {_BILLED}
    )
    SELECT instance, node_group, contract, since, max(since, until) AS until,
      {_HOURS} AS hours, price_per_hour, currency
    FROM spans WHERE price_per_hour IS NOT NULL
"""

_HISTORY = f"""
    SELECT name AS instance, instances.node_group, state, instance_id, instance_type, location, instances.contract,
      requested_at, requested_by, created_at, running_at, delete_requested_at, delete_requested_by, ended_at,
      coalesce(nullif(end_reason, 'deleted'), cancel_reason, delete_reason, end_reason, error_code) AS reason,
      instances.price_per_hour, instances.currency, round(billed.hours, 4) AS hours,
      coalesce(instances.cost, billed.cost) AS cost,
      error_class, error_code, error_message, machine_status,
      attempt AS create_attempts, delete_attempt AS delete_attempts, correlation_id, ordinal, position
    FROM instances LEFT JOIN (
      SELECT instance, sum(hours) AS hours, {_COST} AS cost FROM v_billing GROUP BY instance
    ) AS billed ON instance = name
"""

_DAILY = f"""
    WITH RECURSIVE days(day, instance, since, until, ended, node_group, contract, currency, price_per_hour) AS (
      SELECT date(since), instance, since, min(until, date(since, '+1 day') || 'T00:00:00.000000Z'), until,
        node_group, contract, currency, price_per_hour
      FROM v_billing
      UNION ALL
      SELECT date(day, '+1 day'), instance, until, min(ended, date(day, '+2 days') || 'T00:00:00.000000Z'), ended,
        node_group, contract, currency, price_per_hour
      FROM days WHERE until < ended
    )
    SELECT day, node_group, contract, count(DISTINCT instance) AS instances, round(sum({_HOURS}), 4) AS hours,
      {_COST} AS cost, currency
    FROM days GROUP BY day, node_group, contract, currency
"""

# A ghost is a machine too many under a name of ours, here from its discovery to the next word on it; it is taken to
# cost what its namesake did at that time. The record of an order that was never placed is none.
_WASTE = f"""
    WITH turns AS (
      SELECT substr(stream, 10) AS instance, recorded_at AS since, json_extract(data, '$.state') AS state,
        lead(recorded_at) OVER (PARTITION BY stream ORDER BY version) AS until
      FROM events WHERE type IN
        ('instance.state-observed', 'instance.delete-requested', 'instance.gone', 'instance.lost', 'instance.adopted')
    ),
    ghosts AS (
      SELECT json_extract(data, '$.instance') AS instance, recorded_at AS since, type,
        json_extract(data, '$.reason') AS reason,
        lead(recorded_at) OVER (PARTITION BY json_extract(data, '$.instance_id') ORDER BY position) AS until
      FROM events WHERE type IN ('cloud.duplicate-instance-detected', 'cloud.duplicate-instance-deleted')
    ),
    spans AS (
      SELECT CASE WHEN failed_at IS NULL THEN 'never-ran' ELSE 'failed-boot' END AS kind, billed.*
      FROM v_billing AS billed CROSS JOIN instances ON name = instance
      WHERE running_at IS NULL AND (failed_at IS NOT NULL OR state IN ('deleting', 'gone', 'lost'))
      UNION ALL
      SELECT 'never-joined', billed.* FROM v_billing AS billed WHERE instance IN (
        SELECT json_extract(data, '$.instance') FROM events WHERE type = 'nodegroup.join-failed'
      )
      UNION ALL
      SELECT 'switched-off', instance, node_group, contract, since, coalesce(until, {_NOW}), NULL, price_per_hour,
        currency
      FROM turns CROSS JOIN instances ON name = instance WHERE turns.state = 'stopped' AND running_at IS NOT NULL
      UNION ALL
      SELECT 'ghost', name, node_group, contract, since, coalesce(until, {_NOW}),
        NULL, coalesce((
          SELECT json_extract(told.data, '$.price_per_hour') FROM events AS told
          WHERE told.stream = 'instance-' || name AND told.recorded_at <= since
            AND told.type IN ('instance.create-attempted', 'instance.state-observed')
            AND json_extract(told.data, '$.price_per_hour') IS NOT NULL
          ORDER BY told.version DESC LIMIT 1
        ), price_per_hour) AS price, currency
      FROM ghosts CROSS JOIN instances ON name = instance
      WHERE type = 'cloud.duplicate-instance-detected' AND reason IS NOT '{NEVER_PLACED}' AND price IS NOT NULL
    )
    SELECT kind, instance, node_group, contract, since, until, round({_HOURS}, 4) AS hours,
      printf('%.6f', {_HOURS} * price_per_hour) AS cost, price_per_hour, currency
    FROM spans
"""

COST_VIEWS = {
    "v_billing": _BILLING,
    "v_instance_history": _HISTORY,
    "v_costs_daily": _DAILY,
    "v_waste": _WASTE,
}
"""View name → its SELECT. `v_billing` is one row a machine and price: the periods that all the others add up."""
