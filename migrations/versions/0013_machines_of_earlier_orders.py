"""Machines that earlier orders of a wish had made."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0013"
down_revision: str | None = "0012"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    """A column that the new fold fills."""
    op.add_column("instances", sa.Column("earlier_ids", sa.Text, nullable=False, server_default="[]"))


def downgrade() -> None:
    """An older version would fold the log into a column that it does not know."""
    raise RuntimeError("this revision cannot be undone: restore a backup that the older version made")
