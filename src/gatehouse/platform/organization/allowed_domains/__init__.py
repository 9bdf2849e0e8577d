"""Mail domains that an organization calls its own (reference 2, Organization settings; decisions 2).

    added  -> proven      POST .../verify: its TXT record says so, or an operator does
    any    -> removed     DELETE; addresses of it count as unverified from then on

Only a proven domain's addresses are trusted outside the organization, and only they may register (`jit_provisioning`).
A domain is proven for one organization at a time.
"""
