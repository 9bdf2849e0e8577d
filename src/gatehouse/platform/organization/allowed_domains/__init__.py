"""An organization's mail domains (docs/organization.md, Mail domains).

    added  -> proven      POST .../verify: by its TXT record, or by an operator
    any    -> removed     DELETE; its addresses are then unverified

Only addresses of a proven domain are trusted outside the organization, and only they may register (`jit_provisioning`).
A domain is proven for at most one organization.
"""
