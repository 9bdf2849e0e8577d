"""Generated requests for every operation of the OpenAPI document: no answer is a 5xx, and every answer is as
documented."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from tests.support.platform import RunningPlatform

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("paths", ["--include-path-regex", "--exclude-path-regex"])
async def test_generated_requests_get_documented_answers(platform: RunningPlatform, tmp_path: Path, paths: str) -> None:
    """Model calls and administration are separate runs, so that each has its own time limit."""
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo", "embed", max_retries=0)
    token = platform.signed(
        {"sub": str(tenant.admin.id), "tid": str(tenant.id), "sid": str(tenant.admin.session_id)}, lifetime=3600
    )
    # Methods that a path does not support have their own tests.
    (tmp_path / "schemathesis.toml").write_text("[phases.coverage]\nunexpected-methods = []\n")
    async with platform.listening() as url:
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable).parent / "schemathesis", "run", f"{url}/openapi.json",
            "--header", f"Authorization: Bearer {token}",
            "--checks", CHECKS, "--phases", "coverage,fuzzing", "--max-examples", "2",
            # One worker: on Python 3.11 two threads that parse source at once can fail with a SystemError.
            "--seed", "1", "--workers", "1", "--request-timeout", "20", "--no-color", "--warnings", "off",
            paths, "^/v[12]/",
            # This operation ends the session that all other requests use.
            "--exclude-path", "/api/auth/logout",
            # This operation adds the sandbox's models that fail on purpose.
            "--exclude-path", "/api/admin/models/catalog/sync",
            # This operation calls the server, which does not exist, and answers 502.
            "--exclude-path", "/api/v1/admin/mcp/servers/{server_id}/refresh",
            # Otherwise its HTTP client searches the environment for a proxy before each request.
            env={**os.environ, "NO_PROXY": "127.0.0.1"},
            cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        result, _ = await process.communicate()
    assert process.returncode == 0, result.decode()[-20_000:]
