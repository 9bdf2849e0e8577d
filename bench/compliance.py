"""Measures the time of the compliance figures of one organization with ten million DLP events in a year.

python bench/compliance.py [--events N]

The benchmark starts its own Gatehouse, and fills it by SQL with events and with the counts that the keeper would
compute. It measures the calls over HTTP and, for comparison, the same figures computed from the events. The exit status
is 1 if a call for 30 days takes longer than half a second, or a call for a year longer than two seconds.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from rig import install, postgres, processes
from rig.measure import note

OUT = Path(__file__).parent / "out"
DAYS = 365
BUNDLES = 12
ROUNDS = 15
#: maximum milliseconds of a call, by the number of days
GOALS = {30: 500.0, 365: 2000.0}

# Each request has two events. Kinds that are frequent in practice, such as addresses and mail, are frequent here too.
EVENTS = """
insert into dlp_events (tenant_id, id, timestamp, request_id, direction, status, entity_type, rule_id, rule_name,
                        detector_type, score, match_count, model, action, severity, source)
select %(tenant)s, gen_random_uuid(), (%(day)s::date + (n %% 86400) * interval '1 second') at time zone 'UTC',
       'bench-' || %(day)s || '-' || n / 2, case when n %% 3 = 0 then 'output' else 'input' end, a.status, e.name,
       'rule-' || place, 'Rule ' || place || '-' || n %% 3, 'regex', 0.9, 1, 'bench/model', a.action, a.severity,
       'platform'
from (select n, 1 + floor(power(random(), 2) * %(kinds)s)::int as place
      from generate_series(0, %(events)s - 1) n) numbers
join unnest(%(types)s::text[]) with ordinality e (name, place) using (place)
join lateral (values ('redacted', 'redact', 'medium'), ('logged', 'log_only', 'low'), ('blocked', 'block', 'critical'),
                     ('approved', 'prompt', 'high')) a (status, action, severity)
  on a.action = (array['redact', 'redact', 'log_only', 'log_only', 'log_only', 'block', 'prompt'])[1 + n %% 7]
"""
HITS = """
insert into dlp_counts
select tenant_id, %(day)s::date, entity_type, rule_name, action, severity, count(*) from dlp_events
where tenant_id = %(tenant)s and timestamp >= %(day)s::date::timestamp at time zone 'UTC'
  and timestamp < (%(day)s::date + 1)::timestamp at time zone 'UTC'
group by entity_type, rule_name, action, severity, tenant_id
"""
REQUESTS = """
insert into dlp_request_counts
select %(tenant)s, %(day)s::date, kinds, count(*)
from (select array_agg(distinct entity_type order by entity_type) as kinds from dlp_events
      where tenant_id = %(tenant)s and timestamp >= %(day)s::date::timestamp at time zone 'UTC'
        and timestamp < (%(day)s::date + 1)::timestamp at time zone 'UTC'
      group by request_id) requests
group by kinds
union all select %(tenant)s, %(day)s::date, '{}', 100000
"""
FROM_EVENTS = """
select entity_type, action, severity, rule_name, (timestamp at time zone 'UTC')::date, count(*) from dlp_events
where tenant_id = %(tenant)s and timestamp >= now() - %(days)s * interval '1 day' group by 1, 2, 3, 4, 5
"""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--gatehouse", type=Path, help="the gatehouse command; default: beside this Python")
    return parser.parse_args()


class Running:
    """A running Gatehouse with its own home folder."""

    def __init__(self, command: Path, home: Path) -> None:
        self.home = home
        self._log = home / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [command, "serve", "platform", "--port", "0", "--workers", "1"],
                stdout=log,
                stderr=log,
                env={"PATH": "/usr/bin:/bin", "GATEHOUSE_HOME": str(home), "RATE_LIMIT_ADMIN_EXEMPT": "true"},
                start_new_session=True,
            )
        self.pid = self._process.pid
        result = processes.wait_until(lambda: " serves on http" in self._log.read_text(), seconds=120)
        if not result or not processes.wait_until((home / "trial.key").exists, seconds=30):
            raise SystemExit(self._log.read_text())
        self.url = self._log.read_text().split(" serves on ")[1].split()[0]
        self._key = (home / "trial.key").read_text().strip()
        if not processes.wait_until(self._admitted, seconds=30):
            raise SystemExit("the trial's key is refused")

    def _admitted(self) -> bool:
        """Return whether the worker accepts the key. It may receive a new key with a short delay."""
        try:
            return bool(self.call("/v1/models"))
        except urllib.error.HTTPError:
            return False

    def call(self, path: str, body: dict[str, Any] | None = None) -> bytes:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers)
        with urllib.request.urlopen(request) as answer:
            response_body: bytes = answer.read()
        return response_body

    def stop(self) -> None:
        processes.stop([self.pid])


def fill(running: Running, connection: Any, events: int) -> list[str]:
    """Insert the events, evenly over the days, and return the ids of the bundles."""
    kinds = [
        type_["entity_type"] for type_ in json.loads(running.call("/api/admin/dlp-rules/entity-types"))["entity_types"]
    ]
    tenant = connection.execute("select id from tenants where slug = 'default'").fetchone()[0]
    connection.execute("select gatehouse_ensure_partitions((now() - interval '13 months')::date, 14)")
    for ago in range(DAYS):
        day = connection.execute("select (now() at time zone 'UTC')::date - %s::int", [ago]).fetchone()[0]
        values = {"tenant": tenant, "day": day, "events": events // DAYS, "types": kinds, "kinds": len(kinds)}
        with connection.transaction():
            for statement in (EVENTS, HITS, REQUESTS):
                connection.execute(statement, values)
        if ago % 50 == 0:
            note(f"{ago * (events // DAYS):,} events")
    connection.execute("vacuum analyze")
    ids = []
    for number in range(BUNDLES):
        body = {
            "name": f"Bundle {number}", "regulatory_framework": "SOC2", "version": "1",
            "seed_rule_mappings": kinds[number * 6 : number * 6 + 15],
        }  # fmt: skip
        ids.append(json.loads(running.call("/api/admin/compliance-bundles", body))["id"])
    return ids


def timed(running: Running, path: str) -> float:
    """Return the median time of a call, in milliseconds."""
    samples = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        running.call(path)
        samples.append((time.perf_counter() - began) * 1000)
    return statistics.median(samples)


def measure(running: Running, connection: Any, bundles: list[str]) -> dict[str, dict[int, float]]:
    base = "/api/admin/compliance"
    calls = {
        "stats of a bundle": f"{base}/bundles/{bundles[0]}/stats?days=%s",
        "summary": f"{base}/summary?days=%s",
        "report": f"{base}/report?days=%s",
        "report as a page": f"{base}/report?format=html&days=%s",
    }
    timings = {name: {days: timed(running, path % days) for days in GOALS} for name, path in calls.items()}
    tenant = connection.execute("select id from tenants where slug = 'default'").fetchone()[0]
    timings["the same from the events"] = {}
    for days in GOALS:
        began = time.perf_counter()
        connection.execute(FROM_EVENTS, {"tenant": tenant, "days": days}).fetchall()
        timings["the same from the events"][days] = (time.perf_counter() - began) * 1000
    return timings


def main() -> int:
    install.use_project_python()
    arguments = options()
    command = install.find_gatehouse(arguments.gatehouse)
    if command is None:
        note("The benchmark cannot run; missing: the gatehouse command (make setup)")
        return 2
    home = Path(tempfile.mkdtemp(prefix="gatehouse-bench-"))
    running = None
    try:
        running = Running(command, home)
        connection = postgres.connect(home)
        bundles = fill(running, connection, arguments.events)
        (rows,) = connection.execute("select count(*) from dlp_counts").fetchone()
        (sets,) = connection.execute("select count(*) from dlp_request_counts").fetchone()
        timings = measure(running, connection, bundles)
        connection.close()
    finally:
        if running is not None:
            running.stop()
        shutil.rmtree(home, ignore_errors=True)
    events = arguments.events // DAYS * DAYS
    print(f"\n{events:,} events, {rows:,} counts of hits, {sets:,} counts of requests, {BUNDLES} bundles\n")
    print(f"| Milliseconds | {' | '.join(f'{days} days' for days in GOALS)} |\n|---|{'---|' * len(GOALS)}")
    for name, by_days in timings.items():
        print(f"| {name} | {' | '.join(f'{by_days[days]:,.0f}' for days in GOALS)} |")
    OUT.mkdir(exist_ok=True)
    (OUT / "compliance.json").write_text(
        json.dumps({"events": events, "counts": rows, "sets": sets, "ms": timings}) + "\n"
    )
    *ours, _ = timings.values()
    return int(any(by_days[days] > goal for by_days in ours for days, goal in GOALS.items()))


if __name__ == "__main__":
    sys.exit(main())
