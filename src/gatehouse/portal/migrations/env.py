"""Alembic's entry point. Runs on the connection that `foundation.storage.migrate` provides."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection)
context.run_migrations()
