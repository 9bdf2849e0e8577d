import asyncio, sys
from pathlib import Path
import pytest
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
@pytest.mark.timeout(900)
async def test_fuzz(platform, tenant, directory, tmp_path):
    platform.sql("INSERT INTO users (id, tenant_id, email) SELECT gen_random_uuid(), %s, 'p' || n || '@example.test' FROM generate_series(1,50000) n", [tenant.id])
    platform.sql("ANALYZE users")
    for q in ["lower(coalesce(user_name,email)) = lower('P7@example.test') AND kind='user'", "external_id = 'x' AND kind='user'"]:
        print([r[0] for r in platform.sql(f"EXPLAIN ANALYZE SELECT * FROM users WHERE tenant_id = '{tenant.id}' AND {q} ORDER BY created_at, id LIMIT 100")])
    platform.sql("DELETE FROM users WHERE tenant_id = %s AND email LIKE 'p%%'", [tenant.id])
    u = await directory.user(); g = await directory.group(u)
    async with platform.listening() as url:
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable).parent / "schemathesis", "run", f"{url}/openapi.json",
            "--header", f"Authorization: Bearer {directory.token}", "--include-path-regex", "^/api/scim/v2",
            "--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-examples", "40",
            "--seed", "1", "--workers", "1", "--request-timeout", "20", "--no-color", "--warnings", "off",
            cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
        told, _ = await process.communicate()
    print(told.decode()[-9000:])
