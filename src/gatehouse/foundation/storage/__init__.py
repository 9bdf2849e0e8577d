"""PostgreSQL: connections, sessions that are bound to a tenant, migrations.

Two layers separate tenants. Every tenant-bound query runs in a session for one `TenantId`, which adds a condition to
the query. In addition, PostgreSQL's row-level security shows the application's role only the rows of that tenant, even
if the query has no such condition.
"""
