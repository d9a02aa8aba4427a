"""The numbers behind the configuration's presets and profiles."""

from collections.abc import Mapping

DURATIONS: Mapping[str, Mapping[str, object]] = {
    # Orders of magnitude reported by users of the real API: one to ten minutes in provisioning, about three to SSH.
    "realistic": {
        "new": 0,
        "ordering": {"median": 4, "p95": 20, "low": 1, "high": 120},
        "provisioning": {"median": 110, "p95": 360, "low": 30, "high": 900},
        "validating": {"low": 2, "high": 15},
        "guest": {"median": 120, "p95": 400, "low": 40, "high": 900},
        "shutting_down": {"low": 5, "high": 30},
        "booting": {"low": 10, "high": 40},
        "deleting": {"median": 12, "p95": 60, "low": 1, "high": 300},
        "no_capacity": {"low": 5, "high": 60},
        "no_capacity_linger": 600,
        "detaching": {"low": 2, "high": 8},
        "cloning": {"low": 10, "high": 60},
    },
    "fast": {
        "new": 0,
        "ordering": 0.05,
        "provisioning": 0.2,
        "validating": 0,
        "guest": 0.1,
        "shutting_down": 0.01,
        "booting": 0.01,
        "deleting": 0.05,
        "no_capacity": 0.05,
        "no_capacity_linger": 600,
        "detaching": 0.01,
        "cloning": 0.05,
    },
    "demo": {
        "new": 0,
        "ordering": {"low": 2, "high": 4},
        "provisioning": {"low": 15, "high": 18},
        "validating": {"low": 1, "high": 2},
        "guest": {"low": 4, "high": 8},
        "shutting_down": 3,
        "booting": 4,
        "deleting": {"low": 3, "high": 6},
        "no_capacity": {"low": 3, "high": 6},
        "no_capacity_linger": 60,
        "detaching": 2,
        "cloning": 5,
    },
}

CALM: Mapping[str, object] = {
    "validating": 0.5,
    "stuck": 0.0,
    "error": 0.0,
    "installation_failed": 0.0,
    "async_no_capacity": 0.0,
    "evictions_per_hour": 0.0,
    "never_joins": 0.0,
    "requests": {},
}

PROFILES: Mapping[str, Mapping[str, object]] = {
    "calm": CALM,
    "realistic": {
        **CALM,
        "stuck": 0.005,
        "error": 0.005,
        "installation_failed": 0.003,
        "async_no_capacity": 0.2,
        "evictions_per_hour": 0.02,
        "never_joins": 0.005,
        "requests": {
            "create_timeout_after_commit": 0.002,
            "create_5xx_before": 0.002,
            "create_5xx_after": 0.001,
            "html_502": 0.002,
            "slow": 0.005,
        },
    },
    # One create, delete or list in five goes wrong in some way.
    "hostile": {
        **CALM,
        "stuck": 0.03,
        "error": 0.03,
        "installation_failed": 0.02,
        "async_no_capacity": 0.5,
        "evictions_per_hour": 0.5,
        "never_joins": 0.03,
        "requests": {
            "create_timeout_before_commit": 0.03,
            "create_timeout_after_commit": 0.04,
            "create_reset_after_commit": 0.03,
            "create_truncated": 0.02,
            "create_5xx_before": 0.03,
            "create_5xx_after": 0.03,
            "create_quoted_id": 0.02,
            "delete_timeout_after_commit": 0.05,
            "delete_lost": 0.05,
            "delete_403_already": 0.05,
            "os_volume_left": 0.05,
            "list_stale": 0.06,
            "list_hole": 0.05,
            "list_empty": 0.02,
            "list_duplicate": 0.02,
            "list_truncated_json": 0.02,
            "object_extra_fields": 0.03,
        },
    },
}

_FAMILIES = (
    "B300",
    "B200",
    "H200",
    "H100",
    "A100",
    "A100-40",
    "V100",
    "RTXPRO6000",
    "L40S",
    "RTX6000ADA",
    "A6000",
)


def default_pools() -> dict[str, dict[str, int]]:
    """Sixteen GPUs of everything in FIN-01, some of it elsewhere, GB300 offered but sold out."""
    return {
        "FIN-01": {"GB300": 0, "CPU": 1440, **dict.fromkeys(_FAMILIES, 16)},
        "FIN-02": {"H100": 16, "A100": 8, "L40S": 16, "CPU": 720},
        "FIN-03": {"H200": 16, "B200": 8, "RTX6000ADA": 16, "A6000": 16, "CPU": 720},
        "ICE-01": {"H100": 8, "B300": 16, "CPU": 360},
    }
