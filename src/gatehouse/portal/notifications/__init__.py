"""What an organization should know of (reference 2, Cloud portal; decisions 8, Notification).

outpost_stale         an outpost has not been seen for five minutes; over when it is seen again, or revoked
dead_letter           deliveries of a webhook have failed for good, as the platform told; over when somebody says so
provisioning_failed   the platform does not have the organization; over when it has

About one thing there is one of a kind at a time.
"""
