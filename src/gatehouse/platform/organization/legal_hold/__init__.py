"""Legal holds. While a hold is set, no record of the organization is removed from the database or the archive, no
archive file is moved, and no person is anonymized in the audit chain (docs/retention.md)."""
