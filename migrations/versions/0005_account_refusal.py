"""The cloud's view remembers that the account as a whole is refused."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    """One more column; no log from before has anything to fill it with."""
    op.add_column("cloud", sa.Column("account", sa.Text, nullable=True))


def downgrade() -> None:
    """A projection only: nothing of the log is lost."""
    op.drop_column("cloud", "account")
