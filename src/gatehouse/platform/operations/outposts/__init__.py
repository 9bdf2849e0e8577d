"""Outposts: which certificates the platform trusts, policy bundles, uploaded records (docs/outpost-protocol.md).

    GET  /api/v1/admin/outposts        for administrators: the organization's outposts and their state
    PUT  /v1/platform/outpost-trust    from the portal: authorities, valid serial numbers, organizations
    GET  /v1/outposts/policy-bundle    from an outpost: its organization's signed policy, by long polling
    POST /v1/outposts/records          from an outpost: records of its requests, each stored once

An organization's outposts are refused until its feature flag `outpost_enabled` is on.
"""
