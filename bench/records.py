"""Measures lists, figures and recording of one organization with ten million audit events and ten million usage records
of two months.

python bench/records.py [--records N] [--home DIR]

The benchmark starts its own Gatehouse, and fills it by SQL with records and with the counts and figures that the keeper
would compute. It measures the calls over HTTP. Then it writes a journal of 200,000 records into the home folder and
measures the keeper. The exit status is 1 if a goal is not reached. With --days 6, a million records have as many
records per day as ten million records of two months."""

import argparse
import asyncio
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from compliance import Running
from rig import install, postgres, processes
from rig.measure import note

OUT = Path(__file__).parent / "out"
#: number of days with records; within the window in which lists show records
DEFAULT_DAYS = 60
USERS = 500
#: API keys of each user
KEYS = 4
GROUPS = 20
ROUNDS = 15
INGESTED = 200_000
#: maximum milliseconds of a page of a list
PAGE_GOAL = 20.0
FIGURES_GOAL = 300.0
#: minimum records that are stored per second
INGEST_GOAL = 20_000.0

# There are thirty models of five providers. The first model of each provider is used most. One request in a thousand
# uses a rare model.
RECORDS = """
insert into usage_records (tenant_id, id, timestamp, request_id, user_id, api_key_id, group_id, provider, model_id,
                           requested_model, status, stream,
                           input_tokens, output_tokens, cached_tokens, cost_usd, latency_ms, dlp_action)
select %(tenant)s, md5(%(day)s || '-' || n)::uuid,
       %(day)s::date::timestamp at time zone 'UTC' + n * interval '1 day' / %(rows)s,
       'bench-' || %(day)s || '-' || n, md5('user-' || n %% %(users)s)::uuid,
       md5('key-' || n %% (%(users)s * %(keys)s))::uuid, md5('group-' || n %% %(users)s %% %(groups)s)::uuid,
       'provider-' || model %% 5,
       'model-' || model, 'provider-' || model %% 5 || '/model-' || model,
       case when n %% 50 = 0 then 'error' else 'success' end, n %% 3 = 0, 42, 36, 0, 0.00003,
       exp(6.5 + 0.8 * (random() + random() + random() - 1.5) * 2), 'ALLOW'
from (select n, case when n %% 1000 = 0 then 999 else floor(power(random(), 3) * 30)::int end as model
      from generate_series(0, %(rows)s - 1) n) numbers
"""
EVENTS = """
insert into audit_events (tenant_id, sequence, id, timestamp, actor_id, actor_type, action, request_id, ip, outcome,
                          target_provider, target_model, details, salt, personal_digest, prev_hash, hash)
select tenant_id, %(before)s + row_number() over (order by timestamp), id, timestamp, user_id::text, 'user',
       'gateway.request', request_id, '203.0.113.7', status, provider, model_id,
       jsonb_build_object('path', '/v1/chat/completions', 'status', 200, 'stream', stream, 'cost_usd', cost_usd,
                          'input_tokens', input_tokens, 'output_tokens', output_tokens, 'model', requested_model),
       '\\x00112233445566778899aabbccddeeff', sha256(request_id::bytea), sha256('prev'), sha256(request_id::bytea)
from usage_records where tenant_id = %(tenant)s and timestamp >= %(day)s::date::timestamp at time zone 'UTC'
  and timestamp < (%(day)s::date + 1)::timestamp at time zone 'UTC' and request_id like 'bench-%%'
"""
SETTING_UP = (
    """
update audit_events set timestamp = %(day)s::date::timestamp at time zone 'UTC' where tenant_id = %(tenant)s
""",
    "delete from audit_hours where tenant_id = %(tenant)s",
    """
insert into audit_hours select tenant_id, timestamp, min(sequence), max(sequence) from audit_events
where tenant_id = %(tenant)s group by 1, 2
""",
)
_OF_THE_DAY = """
from usage_records where tenant_id = %(tenant)s and timestamp >= %(day)s::date::timestamp at time zone 'UTC'
  and timestamp < (%(day)s::date + 1)::timestamp at time zone 'UTC' and request_id like 'bench-%%'
"""
COUNTS = f"""
insert into usage_counts (tenant_id, day, user_id, group_id, provider, model_id, records)
select tenant_id, %(day)s::date, user_id, group_id, provider, model_id, count(*) {_OF_THE_DAY} group by 1, 3, 4, 5, 6
"""
ROUTES = f"""
insert into routing_days
select tenant_id, %(day)s::date, provider, model_id, routing_policy_id, group_id, count(*), sum(cost_usd), 0, 0, 0,
       sum(input_tokens), sum(output_tokens) {_OF_THE_DAY} group by 1, 3, 4, 5, 6
"""
_LATENCIES = f"""
select tenant_id, moment, array_agg((bucket << 32) + requests) as latency
from (select tenant_id, date_trunc('{{0}}', timestamp at time zone 'UTC') at time zone 'UTC' as moment,
             greatest(0, ceil(ln(latency_ms / 0.1) / ln(1.1)))::bigint as bucket, count(*) as requests
      {_OF_THE_DAY} group by 1, 2, 3) buckets group by 1, 2
"""
MINUTES = f"""
insert into usage_minutes
select tenant_id, moment, requests, errors, 0, 0, cost_usd, latency from ({_LATENCIES.format("minute")}) latencies
join (select date_trunc('minute', timestamp at time zone 'UTC') at time zone 'UTC' as moment, count(*) as requests,
             count(*) filter (where status = 'error') as errors, sum(cost_usd) as cost_usd {_OF_THE_DAY} group by 1) s
using (moment)
"""
HOURS = f"insert into usage_hours (tenant_id, hour, latency) {_LATENCIES.format('hour')}"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=DEFAULT_DAYS, help="that they are of, 6 at least")
    parser.add_argument("--gatehouse", type=Path, help="the gatehouse command; default: beside this Python")
    parser.add_argument("--home", type=Path, help="a folder that is kept, with what was filled in: a short path")
    return parser.parse_args()


def fill(connection: Any, tenant: UUID, rows: int, days: int) -> None:
    """Insert `rows` records for each day."""
    today = datetime.now(UTC).date()
    connection.execute("select gatehouse_ensure_partitions(%s, %s)", [today - timedelta(days=days), days // 28 + 2])
    (before,) = connection.execute("select sequence from audit_heads where tenant_id = %s", [tenant]).fetchone()
    # The events of the setup must be older than all other events in the chain.
    for statement in SETTING_UP:
        connection.execute(statement, {"tenant": tenant, "day": str(today - timedelta(days=days))})
    for ago in range(days, 0, -1):
        day = today - timedelta(days=ago)
        values = {
            "tenant": tenant,
            "day": str(day),
            "rows": rows,
            "users": USERS,
            "keys": KEYS,
            "groups": GROUPS,
            "before": before,
        }
        with connection.transaction():
            for statement in (RECORDS, EVENTS, COUNTS, ROUTES):
                connection.execute(statement, values)
            # Only a week and an hour of these rows is inserted, because they are not kept longer.
            if ago <= 8:
                connection.execute(MINUTES, values)
                connection.execute(HOURS, values)
            before += rows
            connection.execute("update audit_heads set sequence = %s where tenant_id = %s", [before, tenant])
        if ago % 10 == 0:
            note(f"{(days - ago + 1) * rows:,} records")
    connection.execute("vacuum analyze")


def make_rules(running: Running) -> None:
    """Create alert rules over a week that never trigger."""
    rule = {"name": "bench", "threshold": 1e15, "comparison": "gt", "window_minutes": 10_080}
    for metric in ("cost", "error_rate", "dlp_trigger_count", "blocked_request_count", "latency_p95"):
        running.call("/api/alerts", {**rule, "metric_type": metric})


def timed(running: Running, path: str, body: dict[str, Any] | None = None) -> float:
    """Return the median time of a call, in milliseconds."""
    samples = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        running.call(path, body)
        samples.append((time.perf_counter() - began) * 1000)
    return statistics.median(samples)


def pages(running: Running, connection: Any, rows: int, days: int) -> dict[str, float]:
    records = rows * days
    usage, audit = "/api/v1/usage/records?limit=100", "/v1/audit/events?limit=100"
    user, key = connection.execute("select md5('user-7')::uuid, md5('key-7')::uuid").fetchone()
    now = datetime.now(UTC)
    stamp = "%Y-%m-%dT%H:%M:%SZ"
    since, until = now - timedelta(days=days // 3, hours=5), now - timedelta(days=days // 6, hours=3)
    part = f"&from={since:{stamp}}&to={until:{stamp}}"
    last_day = f"&from={now - timedelta(days=1, hours=now.hour + 1):{stamp}}"
    cursor = json.loads(running.call(audit + last_day))["next_cursor"]
    calls = {
        "usage, first page": usage,
        "usage, last page": f"{usage}&offset={records - 100}",
        "usage, a page in the middle of a day": f"{usage}&offset={days // 2 * rows + rows // 2}",
        "usage of a user, first page": f"{usage}&user_id={user}",
        "usage of a user, last page": f"{usage}&user_id={user}&offset={records // USERS - 100}",
        "usage of a key, first page": f"{usage}&api_key_id={key}",
        "usage of a key, last page": f"{usage}&api_key_id={key}&offset={records // USERS // KEYS - 100}",
        "usage of a key in a period": f"{usage}&api_key_id={key}{part}",
        "usage of a model": f"{usage}&provider=provider-3&model_id=model-3",
        "usage of a rare model": f"{usage}&provider=provider-4&model_id=model-999",
        "usage of a rare model, last page": (
            f"{usage}&provider=provider-4&model_id=model-999&offset={(rows - 1) // 1000 * days}"
        ),
        "usage of a provider": f"{usage}&provider=provider-4",
        "usage of a user and a model": f"{usage}&user_id={user}&provider=provider-3&model_id=model-3",
        "usage of a period": usage + part,
        "usage of a model in a period": f"{usage}&provider=provider-3&model_id=model-3{part}",
        "usage of a user in a period": f"{usage}&user_id={user}{part}",
        "audit, first page": audit,
        "audit, first page of the last hours": audit + last_day,
        "audit, a page after that": f"{audit}&cursor={cursor}",
        "audit of a user": f"{audit}&actor_id={user}",
        "audit of a user, last hours": f"{audit}&actor_id={user}{last_day}",
        "audit of a request": f"{audit}&request_id=bench-{now.date() - timedelta(days=3)}-77",
        "audit of administration": f"{audit}&action=alert_rule.created",
        "audit of a period": audit + part,
    }
    return {name: timed(running, path) for name, path in calls.items()}


def figures(running: Running, connection: Any, days: int) -> dict[str, float]:
    spend = f"/api/admin/usage/spend?from={datetime.now(UTC).date() - timedelta(days=days)}"
    (group,) = connection.execute("select md5('group-7')::uuid").fetchone()
    calls = {
        "compliance summary, 30 days": "/api/admin/compliance/summary?days=30",
        "analytics of cost routing, a day": "/api/admin/cost-routing/analytics?period=day",
        "analytics of cost routing, a month": "/api/admin/cost-routing/analytics?period=month",
        "spend by group": f"{spend}&by=group",
        "spend by user": f"{spend}&by=user",
        "spend by key": f"{spend}&by=api_key",
        "spend by key, last page, by name": f"{spend}&by=api_key&sort=-name&page={USERS * KEYS // 50}",
        "spend by key of a group": f"{spend}&by=api_key&group_id={group}",
        "summary of the last hour": "/api/admin/system/metrics-summary",
    }
    timings = {name: timed(running, path) for name, path in calls.items()}
    timings["alert rules of a week, all five metrics"] = timed(running, "/api/alerts/evaluate", {})
    return timings


def ingest(running: Running, connection: Any, tenant: UUID) -> tuple[float, float]:
    """Return the records per second, and the processor microseconds of the keeper and PostgreSQL per record."""
    made = running.home / "made"
    asyncio.run(_journal(made, tenant))
    (writer,) = made.iterdir()
    into = running.home / "journal" / writer.name
    # Write the pages that the insertion has changed, so that this does not happen during the measurement.
    connection.execute("checkpoint")
    server = int((running.home / "postgres" / "postmaster.pid").read_text().split()[0])
    pids = processes.tree(running.pid, server)
    cpu, began = processes.cpu_seconds(pids), time.perf_counter()
    writer.rename(into)
    if not processes.wait_until(lambda: not into.exists(), seconds=600, every=0.02):
        raise SystemExit("the keeper does not drain its journal")
    seconds = time.perf_counter() - began
    return INGESTED / seconds, (processes.cpu_seconds(pids) - cpu) / INGESTED * 1e6


async def _journal(folder: Path, tenant: UUID) -> None:
    """Write a journal in the same way as a gateway's worker."""
    from gatehouse.engine.records.outcome import Outcome, encode  # noqa: PLC0415 - with the project's Python alone
    from gatehouse.foundation.ids import new_id  # noqa: PLC0415
    from gatehouse.foundation.journal import JournalWriter  # noqa: PLC0415

    dice, writer, users = random.Random(7), JournalWriter(folder), [new_id() for _ in range(USERS)]

    def entry(at: float) -> bytes:
        model = int(dice.random() ** 3 * 30)
        return encode(
            Outcome(
                id=new_id(), tenant_id=tenant, timestamp=at, request_id=new_id().hex, actor_type="user",
                user_id=dice.choice(users), api_key_id=None, client_id=None, ip="203.0.113.7",
                path="/v1/chat/completions", requested_model=f"provider-{model % 5}/model-{model}",
                provider=f"provider-{model % 5}", model_id=f"model-{model}", outcome="success", status=200,
                error_code=None, stream=False, input_tokens=42, output_tokens=36, cached_tokens=0, cost_usd="0.00003",
                latency_ms=dice.lognormvariate(6.5, 0.8), time_to_first_token_ms=None, provider_latency_ms=11.0,
                fallbacks=0, dlp_action="ALLOW",
            )
        )  # fmt: skip

    began = time.time() - 60
    for first in range(0, INGESTED, 1000):
        moments = (began + number * 60 / INGESTED for number in range(first, first + 1000))
        await asyncio.gather(*(writer.append(entry(at)) for at in moments))
    await writer.close()


def main() -> int:
    install.use_project_python()
    arguments = options()
    command = install.find_gatehouse(arguments.gatehouse)
    if command is None:
        note("The benchmark cannot run; missing: the gatehouse command (make setup)")
        return 2
    home = arguments.home or Path(tempfile.mkdtemp(prefix="gatehouse-bench-", dir="/tmp"))
    home.mkdir(exist_ok=True)
    running = None
    try:
        running = Running(command, home)
        connection = postgres.connect(home)
        (tenant,) = connection.execute("select id from tenants where slug = 'default'").fetchone()
        rows = arguments.records // arguments.days
        if connection.execute("select from usage_records where request_id like 'bench-%' limit 1").fetchone() is None:
            make_rules(running)
            fill(connection, tenant, rows, arguments.days)
        lists, sums = pages(running, connection, rows, arguments.days), figures(running, connection, arguments.days)
        speeds = [ingest(running, connection, tenant) for _ in range(3)]
        connection.close()
    finally:
        if running is not None:
            running.stop()
        if arguments.home is None:
            shutil.rmtree(home, ignore_errors=True)
    rows_s, cpu_us = (statistics.median(item) for item in zip(*speeds, strict=True))
    records = rows * arguments.days
    print(f"\n{records:,} usage records and as many audit events\n\n| Milliseconds | | goal |\n|---|---:|---:|")
    for timings, goal in ((lists, PAGE_GOAL), (sums, FIGURES_GOAL)):
        for name, milliseconds in timings.items():
            print(f"| {name} | {milliseconds:,.1f} | {goal:.0f}{'' if milliseconds <= goal else ': missed'} |")
    print(
        f"\n{rows_s:,.0f} records per second are stored (goal {INGEST_GOAL:,.0f}),"
        f" {cpu_us:.0f} us of processor time per record"
    )
    OUT.mkdir(exist_ok=True)
    body = {"records": records, "pages_ms": lists, "figures_ms": sums, "ingest": speeds}
    (OUT / "records.json").write_text(json.dumps(body) + "\n")
    late = any(list_ > PAGE_GOAL for list_ in lists.values()) or any(sum_ > FIGURES_GOAL for sum_ in sums.values())
    return int(late or rows_s < INGEST_GOAL)


if __name__ == "__main__":
    sys.exit(main())
