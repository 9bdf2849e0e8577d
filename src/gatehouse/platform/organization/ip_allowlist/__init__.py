"""The IP allowlist: the addresses from which the gateway and the administration API accept the credentials of an
organization (docs/ip-allowlist.md).

    not enforced <-> enforced     PUT `enabled`; the list is kept
"""
