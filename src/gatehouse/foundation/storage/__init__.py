"""PostgreSQL: where it is, how a tenant is bound to a session, and how the schema is kept.

Two walls keep tenants apart. Every tenant-bound query goes through a session opened for one `TenantId`; and
PostgreSQL's row-level security shows the application's role only that tenant's rows, whatever the query says.
"""
