"""The organization: its tenant row, settings, feature flags and configuration (docs/organization.md)."""
