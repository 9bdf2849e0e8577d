"""PostgreSQL: connections, sessions of one tenant, migrations.

Two layers separate tenants. Every tenant-bound query runs in a session opened for one `TenantId`. In addition
PostgreSQL's row-level security shows the application's role only that tenant's rows, whatever the query says.
"""
