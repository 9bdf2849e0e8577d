"""How an organization wants its people's sessions and second factors, and how long its records are kept (reference 2,
Organization settings, sub-policies). Kept in the tenant's row; what was never set has its default.

The archiver (`records.archive`) acts on the retention policy; what its last run came to is shown beside it.
"""
