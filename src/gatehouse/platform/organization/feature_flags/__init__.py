"""Feature flags: named switches of an organization (reference 2, Organization settings). A flag that was never set
has its default."""
