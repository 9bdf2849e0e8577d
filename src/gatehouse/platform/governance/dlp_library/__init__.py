"""Read-only lists of the built-in patterns and of the taxonomy of entity types. They change only with a new release
(docs/dlp-patterns.md, docs/dlp-entities.md)."""
