"""Notifications of an organization (docs/portal.md, "Notifications").

outpost_stale         an outpost has not been seen for five minutes; resolved when it is seen again, or revoked
dead_letter           a webhook's deliveries have failed for good, as the platform reported; resolved by hand
provisioning_failed   the platform could not provision the organization; resolved once it has

One subject has at most one open notification of a kind.
"""
