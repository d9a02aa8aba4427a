"""What was done to an instance's node, and when its startup script was fetched."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0011"
down_revision: str | None = "0010"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    """Columns that are empty for the nodes of before; the new fold fills in when scripts were fetched."""
    for column in ("prepared_uid", "script_fetched_at", "script_source"):
        op.add_column("instances", sa.Column(column, sa.Text, nullable=True))
    for column in ("node_preparing", "node_prepared"):
        op.add_column("instances", sa.Column(column, sa.Text, nullable=False, server_default="[]"))


def downgrade() -> None:
    """An older version would fold the log into columns that it does not know."""
    raise RuntimeError("this revision cannot be undone: restore a backup that the older version made")
