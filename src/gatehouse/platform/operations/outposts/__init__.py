"""Outposts: whom the platform believes to be one, and what it supplies them with (decisions 8, Wires; decisions 9).

    PUT  /v1/platform/outpost-trust    the portal's word: authorities, good serial numbers, organizations
    GET  /v1/outposts/policy-bundle    by an outpost: its organization's policy, signed; waits for changes
    POST /v1/outposts/records          by an outpost: what it has answered, stored once each

An organization's outposts are refused until its feature flag `outpost_enabled` is on.
"""
