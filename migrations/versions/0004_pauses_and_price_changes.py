"""Groups that an operator paused, and machines whose price changed while they were rented."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    """Add the columns; the new fold fills them at the next start."""
    for column in ("paused_at", "paused_by", "pause_reason"):
        op.add_column("node_groups", sa.Column(column, sa.Text, nullable=True))
    op.add_column("instances", sa.Column("billed_before", sa.Text, nullable=False, server_default="0"))
    op.add_column("instances", sa.Column("price_since", sa.Text, nullable=True))
