"""Memory knows when it was changed and until when it is true, and what a workflow remembers is its own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    op.add_column("memory", sa.Column("changed", sa.Double(), nullable=False, server_default="0"))  # unix seconds
    op.add_column("memory", sa.Column("expires", sa.Double()))  # unix seconds; NULL: never
    op.create_index("memory_by_expiry", "memory", ["expires"], postgresql_where=sa.text("expires IS NOT NULL"))
    op.execute(
        "UPDATE memory SET scope = 'workflow' WHERE scope = 'long_term' AND namespace IN (SELECT id FROM workflows)"
    )
    op.execute("UPDATE memory SET scope = 'shared' WHERE scope = 'long_term'")
