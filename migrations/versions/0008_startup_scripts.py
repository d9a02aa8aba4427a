"""Startup scripts at the cloud, and which of them an instance has."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    """Add the columns and the table; the new fold fills them at the next start."""
    for column in ("script", "script_token"):
        op.add_column("instances", sa.Column(column, sa.Text, nullable=True))
    op.add_column("instances", sa.Column("script_fetches", sa.Integer, nullable=False, server_default="0"))
    op.create_table(
        "startup_scripts",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("script_id", sa.Text, nullable=True),
        sa.Column("deleting", sa.Integer, nullable=False),
        sa.Column("since", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_startup_scripts")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    """An older version would fold the log into tables that it does not know."""
    raise RuntimeError("this revision cannot be undone: restore a backup that the older version made")
