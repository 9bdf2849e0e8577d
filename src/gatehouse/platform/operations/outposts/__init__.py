"""Outposts: trusted certificates, policy bundles and uploaded records (docs/outpost-protocol.md).

    GET  /api/v1/admin/outposts        for administrators: the outposts of the organization and their state
    PUT  /v1/platform/outpost-trust    from the portal: authorities, valid serial numbers, organizations
    GET  /v1/outposts/policy-bundle    from an outpost: the signed policy of its organization, by long polling
    POST /v1/outposts/records          from an outpost: records of its requests, each stored once

The outposts of an organization are refused until its feature flag `outpost_enabled` is on.
"""
