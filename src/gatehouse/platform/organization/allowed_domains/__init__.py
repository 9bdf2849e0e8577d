"""The mail domains of an organization (docs/organization.md, Mail domains).

    added  -> verified    POST .../verify: by its TXT record, or by an operator
    any    -> removed     DELETE; its addresses are then unverified

Only addresses of a verified domain are trusted outside the organization. Only users with such an address can register
(`self_registration`). A domain is verified for at most one organization.
"""
