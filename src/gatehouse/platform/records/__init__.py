"""Records: audit events in a chain per tenant, usage records, DLP events (docs/records.md). This is the lowest package
of the platform's families; every other one writes records."""
