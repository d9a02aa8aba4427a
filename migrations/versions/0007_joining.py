"""What became of machines as nodes, and how groups fare at it."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_COLUMNS = ("node_uid", "node_registered_at", "node_ready_at", "node_problem", "repaired_uid")


def upgrade() -> None:
    """Add columns that mean "nothing known" in the rows there are."""
    op.add_column("node_groups", sa.Column("joining", sa.Text, nullable=False, server_default="{}"))
    for column in _COLUMNS:
        op.add_column("instances", sa.Column(column, sa.Text, nullable=True))


def downgrade() -> None:
    """Projections only: nothing of the log is lost."""
    for column in reversed(_COLUMNS):
        op.drop_column("instances", column)
    op.drop_column("node_groups", "joining")
