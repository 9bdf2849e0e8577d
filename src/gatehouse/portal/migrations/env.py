"""Alembic's entry: runs on the connection that `foundation.storage.migrate` hands over."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection)
context.run_migrations()
