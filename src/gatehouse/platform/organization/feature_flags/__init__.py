"""Feature flags: named switches of an organization (docs/feature-flags.md). A flag that was never set has its default
value."""
