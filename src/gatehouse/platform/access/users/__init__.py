"""Users: people, and service accounts without a password (docs/accounts.md).

    invited   -> active       the invitation token is redeemed at POST /api/auth/register
    active   <-> inactive     PATCH is_active; deactivation ends sessions and refuses keys at once
    any       -> deleted      DELETE; sessions and keys are deleted too; OAuth clients stay

Roles are `admin`, `auditor` and `user`. An operator is an admin of the tenant `default` with the flag `operator`. Each
request checks the user's current role, so a change of role needs no new sign-in.
"""
