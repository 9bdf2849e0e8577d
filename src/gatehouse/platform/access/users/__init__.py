"""Users: people, and service accounts without a password (decisions 2).

    invited   -> active       the invitation's token is redeemed at POST /api/auth/register
    active   <-> inactive     PATCH is_active; inactive ends sessions and stops keys at once
    any       -> removed      DELETE; with the user go sessions and keys, OAuth clients stay

Roles are `admin`, `auditor` and `user`; an operator is an admin of the tenant `default` with the operator mark. What a
role may is judged at each request by the user as it is then, so a change of role needs no new sign-in.
"""
