"""What real nodes have taught about templates."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0010"
down_revision: str | None = "0009"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    """A new projection, and a column that is empty for the nodes of before."""
    op.create_table(
        "learned_templates",
        *(sa.Column(name, sa.Text, nullable=False) for name in ("kind", "node", "figures", "learned_at")),
        sa.Column("position", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("kind", name=op.f("pk_learned_templates")),
        sqlite_strict=True,
    )
    op.add_column("instances", sa.Column("node_measured_at", sa.Text, nullable=True))


def downgrade() -> None:
    """Projections only: nothing of the log is lost."""
    op.drop_column("instances", "node_measured_at")
    op.drop_table("learned_templates")
