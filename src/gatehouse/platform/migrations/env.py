"""Alembic's entry point. It runs on the connection that `foundation.storage.migrate` passes."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection)
context.run_migrations()
