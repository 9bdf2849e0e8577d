"""Legal holds: while one is set, nobody and nothing removes an organization's records, from the database or the
archive; no file of the archive moves, and nobody is taken out of the audit chain (decisions 5, Retention)."""
