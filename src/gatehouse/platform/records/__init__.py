"""Records: an audit chain for each tenant, usage records, and DLP events (docs/records.md). This is the lowest chapter
of the platform's families, because every other chapter writes records."""
