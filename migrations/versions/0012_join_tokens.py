"""Join tokens that were made for machines, and such of the operator's own that are about to end."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0012"
down_revision: str | None = "0011"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    """Two projections, empty until the first token."""
    op.create_table(
        "join_tokens",
        sa.Column("token_id", sa.Text, nullable=False),
        sa.Column("instance", sa.Text, nullable=False),
        sa.Column("node_group", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("expires_at", sa.Text, nullable=False),
        sa.Column("attempted_at", sa.Text, nullable=False),
        sa.Column("minted_at", sa.Text, nullable=True),
        sa.Column("position", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("token_id", name=op.f("pk_join_tokens")),
        sqlite_strict=True,
    )
    op.create_table(
        "doubtful_tokens",
        sa.Column("token_id", sa.Text, nullable=False),
        sa.Column("expires_at", sa.Text, nullable=True),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("token_id", name=op.f("pk_doubtful_tokens")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    """An older version would fold the log into tables that it does not know."""
    raise RuntimeError("this revision cannot be undone: restore a backup that the older version made")
