"""Notifications of an organization (docs/portal.md, "Notifications").

outpost_stale         an outpost has sent no heartbeat for five minutes; resolved when it sends one, or is revoked
dead_letter           the platform has reported deliveries of a webhook that failed permanently; resolved by hand
provisioning_failed   the platform could not provision the organization; resolved when it has been provisioned

A subject has at most one open notification of a kind.
"""
