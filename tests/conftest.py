"""Fixtures for all tests: one real PostgreSQL and one platform per run. Each test creates its own tenant."""

from __future__ import annotations

import functools
import gc
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx2._transports.default as clients
import hypothesis
import pytest
from argon2 import PasswordHasher
from httpx2._config import DEFAULT_TIMEOUT_CONFIG
from structlog.dev import ConsoleRenderer, plain_traceback

from gatehouse.foundation.secrets import passwords
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage import embedded

if TYPE_CHECKING:
    from tests.support.platform import RunningPlatform, Tenant

# Freeze the objects that all tests share, so that garbage collection does not examine them again and again.
gc.set_threshold(1_000_000, 20, 20)

# The public certificate authorities are loaded once. Otherwise each HTTP client of a test would need 20 ms for them.
clients.create_ssl_context = functools.cache(clients.create_ssl_context)

# A server answers late if other tests use all cores. By default, clients wait for five seconds.
DEFAULT_TIMEOUT_CONFIG.connect = DEFAULT_TIMEOUT_CONFIG.read = DEFAULT_TIMEOUT_CONFIG.write = 60.0

# By default, the log of an exception contains the local variables of all frames. Large ones take minutes.
ConsoleRenderer.get_active().exception_formatter = plain_traceback

# A sign-in costs up to eight hashes of 19 MiB each, so hashes in this process are cheaper. Server processes keep the
# real cost.
_real_hasher = passwords._hasher
passwords._hasher = functools.cache(lambda: PasswordHasher(time_cost=1, memory_cost=64, parallelism=1))

# Use the same examples in every run, so that a commit always has the same result. `--hypothesis-profile=explore` draws
# new ones. There are no deadlines, so that a slow machine causes no failures.
_ANY_SPEED: Final[dict[str, Any]] = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("suite", derandomize=True, **_ANY_SPEED)
hypothesis.settings.register_profile("explore", derandomize=False, **_ANY_SPEED)
hypothesis.settings.load_profile("suite")

pytest_plugins = ["tests.support.leak_plugin", "tests.support.required_programs"]


@pytest.fixture(scope="module")
def real_password_hashes() -> Iterator[None]:
    """Hash passwords at the product's own cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", _real_hasher)
        yield


@pytest.fixture(scope="session")
def suite_home() -> Iterator[Path]:
    """A GATEHOUSE_HOME with a running PostgreSQL. Its path is short, because a socket's path may have 100
    characters."""
    with tempfile.TemporaryDirectory(prefix="gh", dir="/tmp", ignore_cleanup_errors=True) as directory:
        yield Path(directory)
        embedded.stop(Path(directory))


@pytest.fixture(scope="session")
def home(suite_home: Path) -> Path:
    """The home of all tests that need no separate one."""
    return suite_home


@pytest.fixture(scope="session")
def settings(home: Path) -> Settings:
    return Settings.from_environment(
        {
            "GATEHOUSE_HOME": str(home),
            "GATEHOUSE_ADMIN_EMAIL": "root@gatehouse.test",
            "GATEHOUSE_ADMIN_PASSWORD": "the first admin's password",
            # Rate limits have their own tests. In all others they would only limit the number of tests.
            "RATE_LIMIT_REQUESTS_PER_MINUTE": "1000000",
            "RATE_LIMIT_ADMIN_RPM": "1000000",
            "RATE_LIMIT_TIERS": '{"/api/auth/login": 1000000, "/api/auth/register": 1000000,'
            ' "/api/auth/refresh": 1000000, "/login": 1000000,'
            ' "/console": 1000000, "POST /api/auth/session/token": 1000000}',
        }
    )


@pytest.fixture(scope="session")
async def platform(settings: Settings) -> AsyncIterator[RunningPlatform]:
    """The platform in this process, with the real database: application, feed and journal. It is called without a
    network."""
    # Imported here, so that a test without the platform starts within a second.
    from tests.support.platform import RunningPlatform

    async with RunningPlatform.start(settings) as running:
        yield running


@pytest.fixture
async def tenant(platform: RunningPlatform) -> Tenant:
    """A new organization with an admin, an auditor and a user."""
    return await platform.new_tenant()


@pytest.fixture
async def other_tenant(platform: RunningPlatform) -> Tenant:
    """Another organization, whose rows must be invisible to the first one."""
    return await platform.new_tenant()
