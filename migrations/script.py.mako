"""${message}."""

from collections.abc import Sequence

from alembic import op

revision: str = ${repr(up_revision)}
down_revision: str | None = ${repr(down_revision)}
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    """Never batch-alter `events`: a recreated table loses its triggers and AUTOINCREMENT."""
    ${upgrades if upgrades else "raise NotImplementedError"}


def downgrade() -> None:
    """Undo."""
    ${downgrades if downgrades else "raise NotImplementedError"}
