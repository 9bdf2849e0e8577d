"""Commands that change an organization in the database."""
