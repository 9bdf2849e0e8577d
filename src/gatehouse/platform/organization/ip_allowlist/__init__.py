"""The IP allowlist: the addresses from which an organization's credentials are accepted, by the gateway and by the
administration API (docs/ip-allowlist.md).

    not enforced <-> enforced     PUT `enabled`; the list is kept
"""
