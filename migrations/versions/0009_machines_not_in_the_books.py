"""Machines that are not in the books in full, claims with their time, how long a machine has had its status.

Projections are disposable: those whose columns change are made anew and empty, and the next start folds the log into
them.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _maybe_text(name: str) -> sa.Column[str | None]:
    return sa.Column(name, sa.Text, nullable=True)


def _integer(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def upgrade() -> None:
    """Two tables anew, one column more."""
    op.add_column("instances", _maybe_text("status_since"))
    op.drop_table("orphans")
    op.create_table(
        "orphans",
        _text("instance_id"),
        _text("hostname"),
        _text("installation"),
        _text("node_group"),
        _maybe_text("price_per_hour"),
        _text("reason"),
        _text("since"),
        _integer("position"),
        sa.PrimaryKeyConstraint("instance_id", name=op.f("pk_orphans")),
        sqlite_strict=True,
    )
    op.drop_table("installation")
    op.create_table(
        "installation",
        _text("name"),
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
        sa.Column("balance_runway_s", sa.Integer, nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_installation")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    """An older version would fold the log into tables that it does not know."""
    raise RuntimeError("this revision cannot be undone: restore a backup that the older version made")
