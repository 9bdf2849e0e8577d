"""An organization's policies for sessions, second factors and retention (docs/organization.md). They are stored in the
tenant's row; fields that were never set have defaults.

The archiver (`records.archive`) applies the retention policy. The API shows the result of its last run with the policy.
"""
