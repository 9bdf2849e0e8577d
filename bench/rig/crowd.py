"""Inserts rows for many tenants. Each tenant has the same objects as the tenant of the benchmark. There are also API
keys whose text is known, and usage records."""

from typing import Any

#: the API keys of the tenants are this text and a number, from 1
KEY = "gk_bench"

TENANTS = """
insert into tenants (id, slug, name)
select gen_random_uuid(), 'crowd-' || n, 'Crowd ' || n from generate_series(1, %(tenants)s) n
"""
USERS = """
insert into users (id, tenant_id, email)
select gen_random_uuid(), id, slug || '@example.com' from tenants where slug like 'crowd-%%'
"""
KEYS = """
insert into api_keys (id, tenant_id, user_id, key_prefix, digest, description)
select gen_random_uuid(), u.tenant_id, u.id, left(k.key, 11), sha256(convert_to(k.key, 'utf8')), 'crowd'
from (select n, %(key)s || n as key from generate_series(1, %(keys)s) n) k
join (select id, tenant_id, row_number() over (order by email) as n from users where email like 'crowd-%%') u
  on u.n = 1 + k.n %% %(tenants)s
"""
# The providers have no credentials, which are sealed for each tenant; the mock needs none. They have no health checks,
# because the keeper would make thousands of checks every 30 seconds, which are not part of the cost of a request.
PROVIDERS = """
insert into providers (tenant_id, id, name, kind, config, health_config)
select t.id, p.id, p.name, p.kind, p.config, jsonb_build_object('enabled', false)
from tenants t cross join providers p where t.slug like 'crowd-%%' and p.id like 'bench-%%'
"""
MODELS = """
insert into model_configs (id, tenant_id, provider, model_id, display_name, context_window, capabilities,
                           cost_per_input_token, cost_per_output_token)
select gen_random_uuid(), t.id, m.provider, m.model_id, m.display_name, m.context_window, m.capabilities,
       m.cost_per_input_token, m.cost_per_output_token
from tenants t cross join model_configs m where t.slug like 'crowd-%%' and m.provider like 'bench-%%'
"""
RECORDS = """
insert into usage_records (tenant_id, id, timestamp, request_id, user_id, api_key_id, provider, model_id,
                           requested_model, status, stream, input_tokens, output_tokens, cached_tokens, cost_usd,
                           latency_ms, dlp_action)
select k.tenant_id, gen_random_uuid(), now() - r.n * interval '1 second', 'crowd-' || r.n, k.user_id, k.id,
       'bench-at-once', 'gpt-4o-mini', 'bench-at-once/gpt-4o-mini', 'success', false, 42, 36, 0, 0.00003, 12.5, 'ALLOW'
from generate_series(1, %(records)s) r(n)
join (select id, tenant_id, user_id, row_number() over (order by key_prefix, id) - 1 as n
      from api_keys where description = 'crowd') k on k.n = r.n %% %(keys)s
"""


def settle_in(connection: Any, *, tenants: int, keys: int, records: int) -> None:
    """Insert the rows, as the owner of the cluster. Providers whose id begins with `bench-` must exist."""
    numbers = {"tenants": tenants, "keys": keys, "records": records, "key": KEY}
    for statement in (TENANTS, USERS, KEYS, PROVIDERS, MODELS, RECORDS):
        connection.execute(statement, numbers)
    # Otherwise, autovacuum would do this a minute later, during a measurement.
    connection.execute("vacuum analyze")
