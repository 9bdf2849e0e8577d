"""The policies of an organization for sessions, second factors and retention (docs/organization.md). They are stored in
the tenant's row. Fields that were never set have default values.

The archiver (`records.archive`) applies the retention policy. The API returns the result of the archiver's last run
together with the policy.
"""
