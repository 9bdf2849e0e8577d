"""A user's own account: registration and password (docs/accounts.md).

    none    -> user        registration, if the address's domain is proven and open (`self_registration`), and the
                           organization has no active identity provider
    invited -> user        registration with an invitation token: the user that an administrator created gets a password
    user    -> user        a new password, with the old one or a one-time token: from an administrator, or by mail

If mail is configured, a user who registers without an invitation confirms the address before the first sign-in.

A new password ends the sessions of the old one, and voids unused one-time tokens.
"""
