"""What is left on the account, and how long it must last."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    """Add the columns; the new fold fills them at the next start."""
    op.add_column("cloud", sa.Column("balance", sa.Text, nullable=True))
    op.add_column("cloud", sa.Column("balance_currency", sa.Text, nullable=False, server_default=""))
    op.add_column("installation", sa.Column("balance_runway_s", sa.Integer, nullable=True))
