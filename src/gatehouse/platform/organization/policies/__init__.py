"""How an organization wants its people's sessions and second factors (reference 2, Organization settings,
sub-policies). Kept in the tenant's row; what was never set has its default."""
