"""How an organization wants its people's sessions and second factors, and how long its records are kept (reference 2,
Organization settings, sub-policies). Kept in the tenant's row; what was never set has its default.

The archiver that acts on the retention policy is not in this version: what it would do is stored and validated, and
`last_archival_*` are null.
"""
