"""A user's own account: registration and password (docs/accounts.md).

    none    -> user        registration, if the address's domain is verified and open (`self_registration`), and the
                           organization has no active identity provider
    invited -> user        registration with an invitation token: the user that an administrator created gets a password
    user    -> user        a new password, set with the old one or with a one-time token (from an administrator
                           or a mail)

If mail is configured, a user who registers without an invitation confirms the address before the first sign-in.

A new password ends the user's sessions, except the one that set it, and voids unused one-time tokens.
"""
