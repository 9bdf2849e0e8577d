"""One's own account: registering, and one's password (decisions 2 and 3).

    nobody  -> user        register, where the address's domain is proven and open (`self_registration`), and the
                           organization has no active identity provider
    invited -> user        register with the invitation's token: the user that the administrator made gets a password
    user    -> user        a new password, by the old one or by an administrator's one-time token

Every new password ends the sessions that the old one opened, and voids tokens that were not used yet.
"""
