"""Read-only lists of the built-in patterns and of the taxonomy of entity types. They change with the release only
(docs/dlp-patterns.md, docs/dlp-entities.md)."""
