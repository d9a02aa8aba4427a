"""What is being done to the cluster's nodes."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def _integer(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _texts(words: str) -> Sequence[sa.Column[str]]:
    return [sa.Column(word, sa.Text, nullable=False) for word in words.split()]


def upgrade() -> None:
    """Create the projections of the stream `cluster`."""
    op.create_table(
        "cluster",
        *_texts("name"),
        _integer("version"),
        _integer("position"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_cluster")),
        sqlite_strict=True,
    )
    op.create_table(
        "node_removals",
        *_texts("uid node instance node_group end silent_since attempted_at"),
        _integer("position"),
        sa.PrimaryKeyConstraint("uid", name=op.f("pk_node_removals")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    """Projections only: nothing of the log is lost."""
    op.drop_table("node_removals")
    op.drop_table("cluster")
