"""How Alembic runs the migrations: on the connection and in the transaction of `migrating`."""

from __future__ import annotations

from alembic import context

from pointsman.store.postgres.migration import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
context.run_migrations()
