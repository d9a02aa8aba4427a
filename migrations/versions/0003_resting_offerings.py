"""Node groups remember which offerings rest. A projection is made anew: the log fills it at the next start."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    """An empty table in place of the old one; the fold's new version has the log folded into it."""
    op.drop_table("node_groups")
    op.create_table(
        "node_groups",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("ordinal", sa.Integer, nullable=False),
        sa.Column("retired", sa.Integer, nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("rests", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_node_groups")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    """An older version would fold the log into tables that it does not know."""
    raise RuntimeError("this revision cannot be undone: restore a backup that the older version made")
