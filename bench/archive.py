"""Measures the speed and the memory of archiving a million old usage records: `python bench/archive.py [ROWS]`.
It needs only this checkout, and starts its own embedded PostgreSQL."""

import resource
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage import embedded
from gatehouse.platform.changes.change import DEFAULT_TENANT
from gatehouse.platform.installation import setup
from gatehouse.platform.records.archive import jobs

_MAKE = """
INSERT INTO usage_records (tenant_id, id, timestamp, request_id, user_id, provider, model_id, requested_model, status,
    stream, input_tokens, output_tokens, cached_tokens, cost_usd, latency_ms, fallbacks, dlp_action)
SELECT %(tenant)s, gen_random_uuid(), now() - interval '200 days' + n * interval '90 days' / %(rows)s,
    md5(n::text), md5((n %% 500)::text)::uuid, 'openai', 'gpt-' || n %% 20, 'auto', 'success', n %% 2 = 0, n %% 4000,
    n %% 900, 0, (n %% 1000) * 0.000017, n %% 3000 + 0.25, 0, 'ALLOW'
FROM generate_series(1, %(rows)s) AS n
"""
_COUNT = """
INSERT INTO usage_counts SELECT tenant_id, (timestamp AT TIME ZONE 'UTC')::date, user_id, group_id, provider, model_id,
    count(*) FROM usage_records GROUP BY 1, 2, 3, 4, 5, 6
"""


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(prefix="gh", dir="/tmp") as directory:
        home = Path(directory)
        installed = setup.connect(Settings.from_environment({"GATEHOUSE_HOME": directory}))
        try:
            setup.prepare(installed)
            with psycopg.connect(installed.owner_url) as connection:
                for month in range(8):
                    connection.execute(
                        "SELECT gatehouse_ensure_partitions((now() - make_interval(months => %s))::date, 1)", [month]
                    )
                connection.execute(_MAKE, {"tenant": DEFAULT_TENANT, "rows": rows})
                connection.execute(_COUNT)
            keys = installed.master_keys
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            began = time.perf_counter()
            done = jobs.run(
                installed.settings, installed.url, Sealer(keys.keys, keys.current), [DEFAULT_TENANT],
                now=datetime.now(UTC),
            )  # fmt: skip
            took = time.perf_counter() - began
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            size = sum(path.stat().st_size for path in (home / "archive").rglob("*.parquet"))
            print(f"{done} rows in {took:.1f} s: {done / took:,.0f} rows/s, written, read back and removed")
            print(f"{size / done:.0f} bytes a row; memory at most {after // 1024} MiB, {before // 1024} MiB before")
        finally:
            embedded.stop(home)


if __name__ == "__main__":
    main()
